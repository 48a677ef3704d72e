// SPDX-License-Identifier: Apache-2.0
#include "core/cpu_features.hpp"

#include <cstdint>
#include <cstring>

#include "core/environment_variables.hpp"
#include "tutti/core/error.hpp"
#include "tutti/core/logging.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace tutti {

namespace {

#if defined(__x86_64__)

struct Registers {
  std::uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

Registers cpuid(std::uint32_t leaf, std::uint32_t subleaf = 0) {
  Registers r;
  if (__get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx) == 0) return Registers{};
  return r;
}

constexpr bool bit(std::uint64_t word, unsigned index) { return ((word >> index) & 1U) != 0; }

// Which register sets the operating system saves on a context switch.
std::uint64_t saved_state_mask() {
  std::uint32_t low = 0;
  std::uint32_t high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (static_cast<std::uint64_t>(high) << 32U) | low;
}

std::string brand_text() {
  if (cpuid(0x80000000U).eax < 0x80000004U) return "x86-64";
  char text[49] = {};
  for (std::uint32_t i = 0; i < 3; ++i) {
    const Registers r = cpuid(0x80000002U + i);
    std::memcpy(text + 16 * i, &r, 16);
  }
  std::string brand(text);
  const std::size_t first = brand.find_first_not_of(' ');
  const std::size_t last = brand.find_last_not_of(' ');
  return first == std::string::npos ? "x86-64" : brand.substr(first, last - first + 1);
}

// Bit positions: Intel SDM volume 2, CPUID; volume 1, section 13.1 for XCR0.
CpuFeatures detect() {
  CpuFeatures found;
  const Registers basic = cpuid(0);
  char vendor[13] = {};
  std::memcpy(vendor, &basic.ebx, 4);
  std::memcpy(vendor + 4, &basic.edx, 4);
  std::memcpy(vendor + 8, &basic.ecx, 4);
  found.vendor = vendor;
  found.model_name = brand_text();

  const Registers one = cpuid(1);
  const Registers seven = cpuid(7);
  const Registers seven_one = seven.eax >= 1 ? cpuid(7, 1) : Registers{};
  const Registers extended = cpuid(0x80000001U);
  const std::uint64_t saved = bit(one.ecx, 27) ? saved_state_mask() : 0;
  const bool saves_avx = (saved & 0x6U) == 0x6U;
  const bool saves_avx512 = saves_avx && (saved & 0xe0U) == 0xe0U;
  const bool saves_amx = (saved & 0x60000U) == 0x60000U;

  // SSSE3, CMPXCHG16B, SSE4.1, SSE4.2, POPCNT; LAHF.
  found.x86_64_v2 = bit(one.ecx, 9) && bit(one.ecx, 13) && bit(one.ecx, 19) && bit(one.ecx, 20) &&
                    bit(one.ecx, 23) && bit(extended.ecx, 0);
  // FMA, MOVBE, AVX, F16C; BMI1, AVX2, BMI2; LZCNT.
  found.x86_64_v3 = found.x86_64_v2 && saves_avx && bit(one.ecx, 12) && bit(one.ecx, 22) &&
                    bit(one.ecx, 28) && bit(one.ecx, 29) && bit(seven.ebx, 3) && bit(seven.ebx, 5) &&
                    bit(seven.ebx, 8) && bit(extended.ecx, 5);
  // AVX-512 F, DQ, CD, BW, VL.
  found.x86_64_v4 = found.x86_64_v3 && saves_avx512 && bit(seven.ebx, 16) && bit(seven.ebx, 17) &&
                    bit(seven.ebx, 28) && bit(seven.ebx, 30) && bit(seven.ebx, 31);
  found.avx_vnni = found.x86_64_v3 && bit(seven_one.eax, 4);
  found.avx512_vnni = found.x86_64_v4 && bit(seven.ecx, 11);
  found.avx512_bf16 = found.x86_64_v4 && bit(seven_one.eax, 5);
  found.avx512_fp16 = found.x86_64_v4 && bit(seven.edx, 23);
  found.amx_bf16 = saves_amx && bit(seven.edx, 24) && bit(seven.edx, 22);
  found.amx_int8 = saves_amx && bit(seven.edx, 24) && bit(seven.edx, 25);
  return found;
}

#else

CpuFeatures detect() {
  CpuFeatures found;
  found.vendor = "unknown";
  found.model_name = "not x86-64";
  return found;
}

#endif

IsaLevel read_active_isa() {
  const IsaLevel detected = detected_isa();
  const auto wanted = environment_text("TUTTI_ISA");
  if (!wanted) return detected;
  for (const IsaLevel level : {IsaLevel::kV2, IsaLevel::kV3, IsaLevel::kV4}) {
    if (*wanted != name(level)) continue;
    if (level <= detected) return level;
    logging::warning("TUTTI_ISA asks for ", name(level), ", but this machine supports ", name(detected),
                     "; using ", name(detected));
    return detected;
  }
  detail::fail<ValueError>("TUTTI_ISA must be v2, v3 or v4, but is \"", *wanted, "\"");
}

}  // namespace

const CpuFeatures& cpu_features() {
  static const CpuFeatures kFeatures = detect();
  return kFeatures;
}

const char* name(IsaLevel level) noexcept {
  constexpr const char* kNames[] = {"v2", "v3", "v4"};
  return kNames[static_cast<int>(level)];
}

IsaLevel detected_isa() {
  const CpuFeatures& features = cpu_features();
  if (features.x86_64_v4) return IsaLevel::kV4;
  return features.x86_64_v3 ? IsaLevel::kV3 : IsaLevel::kV2;
}

IsaLevel active_isa() {
  static const IsaLevel kLevel = read_active_isa();
  return kLevel;
}

std::string cpu_features_text() {
  const CpuFeatures& f = cpu_features();
  std::string text = f.x86_64_v2 ? concat("x86-64-", name(detected_isa())) : std::string("baseline");
  const struct {
    bool present;
    const char* name;
  } kExtras[] = {{f.avx_vnni, "avx_vnni"},       {f.avx512_vnni, "avx512_vnni"},
                 {f.avx512_bf16, "avx512_bf16"}, {f.avx512_fp16, "avx512_fp16"},
                 {f.amx_bf16, "amx_bf16"},       {f.amx_int8, "amx_int8"}};
  for (const auto& extra : kExtras) {
    if (extra.present) text += concat(" ", extra.name);
  }
  return text;
}

}  // namespace tutti
