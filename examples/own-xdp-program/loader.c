/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Loads guard.bpf.o with an image in its map: loader OBJECT IMAGE ADDRESS...
 * Then asks it what happens to a packet from each IPv4 address on the command line. No interface is involved.
 */
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <netinet/ip.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <libsieve/libsieve.h>

/* Loads the object with a map that has as many lines as the image, and copies the image's lines into it. */
static struct bpf_object* load(const char* path, const libsieve_image* image) {
    struct bpf_object* object = bpf_object__open(path);
    struct bpf_map* map;
    const void* lines;
    void* values;
    uint32_t count;

    if (!object) return NULL;
    lines = libsieve_image_lines(image, &count);
    map = bpf_object__find_map_by_name(object, "image");
    if (!map || bpf_map__set_max_entries(map, count) || bpf_object__load(object)) goto fail;
    values = mmap(NULL, count * 64UL, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);
    if (values == MAP_FAILED) goto fail;
    memcpy(values, lines, count * 64UL);
    munmap(values, count * 64UL);
    return object;
fail:
    bpf_object__close(object);
    return NULL;
}

static int ask(int program, const char* address) {
    unsigned char frame[ETH_HLEN + sizeof(struct iphdr)] = {0};
    struct ethhdr* ethernet = (void*)frame;
    struct iphdr ip = {.version = 4, .ihl = 5, .tot_len = htons(sizeof(ip)), .ttl = 64};
    LIBBPF_OPTS(bpf_test_run_opts, run, .data_in = frame, .data_size_in = sizeof(frame), .repeat = 1);

    if (inet_pton(AF_INET, address, &ip.saddr) != 1) return -1;
    ethernet->h_proto = htons(ETH_P_IP);
    memcpy(frame + ETH_HLEN, &ip, sizeof(ip));
    return bpf_prog_test_run_opts(program, &run) ? -1 : (int)run.retval;
}

int main(int argc, char** argv) {
    libsieve_image* image = NULL;
    libsieve_error* error = NULL;
    struct bpf_object* object;
    int failed = 0;

    if (argc < 3) return fprintf(stderr, "usage: loader OBJECT IMAGE ADDRESS...\n"), 2;
    if (!libsieve_image_open(argv[2], &image, &error)) {
        fprintf(stderr, "loader: %s\n", libsieve_error_message(error));
        libsieve_error_free(error);
        return 1;
    }
    object = load(argv[1], image);
    libsieve_image_free(image);
    if (!object) return fprintf(stderr, "loader: %s cannot be loaded\n", argv[1]), 1;
    for (int i = 3; i < argc; i++) {
        const int verdict = ask(bpf_program__fd(bpf_object__find_program_by_name(object, "guard")), argv[i]);
        if (verdict < 0)
            failed = fprintf(stderr, "loader: %s: cannot be asked\n", argv[i]);
        else
            printf("%s %s\n", argv[i], verdict == XDP_DROP ? "drop" : "pass");
    }
    bpf_object__close(object);
    return failed ? 1 : 0;
}
