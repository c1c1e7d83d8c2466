// The kinds of moves, how many there are in a step, and how often they were accepted.

#pragma once

#include <array>

namespace islab::sample {

enum Move {
    toggle_move,
    swap_out_move,
    add_move,
    drop_move,
    swap_move,
    birth_move,
    death_move,
    unit_move,
    pair_move,
    all_move,
    n_moves
};

inline const char* move_name(int move) {
    static const char* names[] = {"toggle output edge", "swap output edge",  "add edge",
                                  "drop edge",          "swap edge",         "add unit",
                                  "drop unit",          "weights of a unit", "weights of a pair",
                                  "all weights"};
    return names[move];
}

// How often moves were proposed and accepted.
struct Counts {
    std::array<long, n_moves> accepted{}, proposed{};

    bool add(Move move, bool yes) {
        ++proposed[move];
        accepted[move] += yes;
        return yes;
    }
};

struct Effort {
    int toggles = 50;       // structure moves of each Gaussian output
    int edges = 20;         // of add, drop and swap
    int units = 4;          // of birth and death
    int parts = 6;          // hidden units whose weights move, alone or with those they reach
    int largest_part = 80;  // parameters that move together
};

}  // namespace islab::sample
