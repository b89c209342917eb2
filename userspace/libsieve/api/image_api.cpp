// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
#include "libsieve/api/handles.hpp"
#include "libsieve/filters/kinds/registry.hpp"

using sieve::api::guarded;

bool libsieve_image_open(const char* path, libsieve_image** image, libsieve_error** error) {
    return guarded(error, {{"path", path}, {"image", image}}, [&]() -> sieve::Status {
        SIEVE_ASSIGN(sieve::Image opened, sieve::Image::load(path));
        *image = std::make_unique<libsieve_image>(libsieve_image{std::move(opened)}).release();
        return {};
    });
}

bool libsieve_image_save(libsieve_image* image, const char* path, libsieve_error** error) {
    return guarded(error, {{"image", image}, {"path", path}}, [&] { return image->image.save(path); });
}

void libsieve_image_describe(const libsieve_image* image, libsieve_image_info* info) {
    if (image == nullptr || info == nullptr) return;
    const sieve_lookup& lookup = image->image.lookup();
    const sieve_file& file = image->image.file();
    libsieve_image_info all{};
    all.kind = sieve::kind_name(lookup.kind);
    all.label = reinterpret_cast<const char*>(file.label); // check() made sure that the label ends
    all.fields = lookup.fields;
    all.probes = lookup.probes;
    all.keys = file.keys;
    all.entries = file.entries;
    all.duplicates = file.duplicates;
    all.built_at = file.built_at;
    std::copy(std::begin(file.identity), std::end(file.identity), all.identity);
    all.bits_per_key =
        static_cast<double>(image->image.filter().size() * SIEVE_LINE_BITS) / static_cast<double>(file.keys);
    all.predicted_fpr = sieve::rate_from_bits(file.predicted_fpr);
    all.expected_fpr = sieve::rate_from_bits(file.expected_fpr);
    all.measured_fpr = sieve::rate_from_bits(file.measured_fpr);
    sieve::api::fill(info, all);
}

bool libsieve_image_contains(const libsieve_image* image, const sieve_key* key) {
    return image != nullptr && key != nullptr && image->image.contains(*key);
}

const void* libsieve_image_lines(const libsieve_image* image, uint32_t* lines) {
    if (image == nullptr || lines == nullptr) return nullptr;
    *lines = static_cast<uint32_t>(image->image.lines().size());
    return image->image.lines().data();
}

void libsieve_image_free(libsieve_image* image) {
    std::unique_ptr<libsieve_image>{image}.reset();
}
