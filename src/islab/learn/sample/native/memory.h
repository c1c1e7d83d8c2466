// Memory of runs of numbers, kept for the next run.
//
// A move makes columns as long as the data and lets most of them go again. The system's allocator
// takes longer to find such blocks than a pass over a few hundred rows takes. A thread keeps those
// that it has freed, up to some megabytes. They begin where lines of the cache do.

#pragma once

#include <array>
#include <cstddef>
#include <new>
#include <utility>
#include <vector>

namespace islab::sample {

class Blocks {
   public:
    Blocks() = default;
    Blocks(const Blocks&) = delete;
    Blocks& operator=(const Blocks&) = delete;
    ~Blocks() {
        for (auto& each : kept)
            for (void* block : each) release(block);
    }

    void* take(std::size_t bytes) {
        const std::size_t k = kind(bytes);
        if (k == kinds) return obtain(bytes);
        if (kept[k].empty()) return obtain(smallest << k);
        void* block = kept[k].back();
        kept[k].pop_back();
        size -= smallest << k;
        return block;
    }

    void give(void* block, std::size_t bytes) {
        const std::size_t k = kind(bytes);
        if (k == kinds || size + (smallest << k) > most) return release(block);
        kept[k].push_back(block);
        size += smallest << k;
    }

    static Blocks& own() {
        thread_local Blocks blocks;
        return blocks;
    }

   private:
    static constexpr std::size_t smallest = 1024, kinds = 12, most = std::size_t(1) << 24;
    static constexpr std::align_val_t line{64};

    std::array<std::vector<void*>, kinds> kept;  // of 1, 2, 4, ... times the smallest size
    std::size_t size = 0;                        // bytes kept

    static std::size_t kind(std::size_t bytes) {
        std::size_t k = 0;
        while (k < kinds && smallest << k < bytes) ++k;
        return k;
    }

    static void* obtain(std::size_t bytes) { return ::operator new(bytes, line); }
    static void release(void* block) { ::operator delete(block, line); }
};

// For std::vector. Small blocks, and all where a sanitizer watches them, are the system's.
template <class Number>
struct Recycled {
    using value_type = Number;

    Recycled() = default;
    template <class Other>
    Recycled(const Recycled<Other>&) {}

    Number* allocate(std::size_t count) {
        const std::size_t bytes = count * sizeof(Number);
        return static_cast<Number*>(recycled(bytes) ? Blocks::own().take(bytes)
                                                    : ::operator new(bytes));
    }

    void deallocate(Number* block, std::size_t count) noexcept {
        const std::size_t bytes = count * sizeof(Number);
        recycled(bytes) ? Blocks::own().give(block, bytes) : ::operator delete(block);
    }

    // Numbers that are given no value have none: columns are written before they are read.
    template <class Other>
    void construct(Other* place) noexcept {
        ::new (static_cast<void*>(place)) Other;
    }
    template <class Other, class... Values>
    void construct(Other* place, Values&&... values) {
        ::new (static_cast<void*>(place)) Other(std::forward<Values>(values)...);
    }

    template <class Other>
    bool operator==(const Recycled<Other>&) const {
        return true;
    }
    template <class Other>
    bool operator!=(const Recycled<Other>&) const {
        return false;
    }

   private:
#if defined(__SANITIZE_ADDRESS__)
    static constexpr bool watched = true;
#else
    static constexpr bool watched = false;
#endif

    static bool recycled(std::size_t bytes) { return !watched && bytes > 512; }
};

}  // namespace islab::sample
