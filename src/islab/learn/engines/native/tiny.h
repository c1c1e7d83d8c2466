// Numbers too small for full precision count as zero while a call lasts.
//
// Units that die leave gradients of 1e-39 behind. They change nothing, but many processors take a
// hundred times as long for each. The mode is the calling thread's, and is put back at the end.

#pragma once

#include <cstdint>

#if defined(__x86_64__) || defined(_M_X64)
#include <xmmintrin.h>
#endif

namespace islab {

class TinyAsZero {
   public:
    TinyAsZero() : before_(mode()) { set_mode(before_ | FLUSH); }
    ~TinyAsZero() { set_mode(before_); }
    TinyAsZero(const TinyAsZero&) = delete;
    TinyAsZero& operator=(const TinyAsZero&) = delete;

   private:
#if defined(__x86_64__) || defined(_M_X64)
    using Mode = unsigned int;
    static constexpr Mode FLUSH = 0x8040;  // results (FTZ) and operands (DAZ)
    static Mode mode() { return _mm_getcsr(); }
    static void set_mode(Mode value) { _mm_setcsr(value); }
#elif defined(__aarch64__) && defined(__GNUC__)
    using Mode = std::uint64_t;
    static constexpr Mode FLUSH = Mode(1) << 24;  // FZ
    static Mode mode() {
        Mode value;
        asm volatile("mrs %0, fpcr" : "=r"(value));
        return value;
    }
    static void set_mode(Mode value) { asm volatile("msr fpcr, %0" ::"r"(value)); }
#else
    using Mode = int;
    static constexpr Mode FLUSH = 0;
    static Mode mode() { return 0; }
    static void set_mode(Mode) {}
#endif
    const Mode before_;
};

}  // namespace islab
