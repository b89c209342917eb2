// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// Builds an image from a feed of source addresses, then asks it about the addresses on the command line:
//
//     build-and-ask FEED IMAGE ADDRESS...
#include <cstdio>

#include <libsieve/libsieve.hpp>

namespace {

int complain(const libsieve::Error& error) {
    std::fprintf(stderr, "build-and-ask: %s\n", error.message.c_str());
    return 1;
}

} // namespace

int main(int argc, char** argv) {
    if (argc < 3) {
        std::fprintf(stderr, "usage: build-and-ask FEED IMAGE ADDRESS...\n");
        return 2;
    }
    auto keys = libsieve::Keys::of(SIEVE_FIELD_SRC);
    if (!keys) return complain(keys.error());
    if (const auto added = keys->add_feed(argv[1]); !added) return complain(added.error());

    // How large must the image be for one false positive in ten thousand?
    const auto plan = libsieve::plan(keys->count(), 1e-4, 0);
    if (!plan) return complain(plan.error());
    libsieve::BuildOptions options{.fpr = 1e-4, .label = argv[1]};
    for (const libsieve::Candidate& candidate : *plan)
        if (candidate.recommended) {
            std::printf("recommended: %s, %s, %.1f bits per key\n", candidate.kind.c_str(),
                        candidate.parameters.c_str(), candidate.bits_per_key);
            options.kind = candidate.kind;
        }

    auto image = libsieve::build(std::move(*keys), options);
    if (!image) return complain(image.error());
    if (const auto saved = image->save(argv[2]); !saved) return complain(saved.error());
    const libsieve_image_info info = image->info();
    std::printf("%llu keys, %s, false positive rate %.2g measured\n",
                static_cast<unsigned long long>(info.keys), info.kind, info.measured_fpr);

    for (int i = 3; i < argc; i++) {
        const auto present = image->contains(argv[i]);
        if (!present) return complain(present.error());
        std::printf("%s %s\n", argv[i], *present ? "present" : "absent");
    }
    return 0;
}
