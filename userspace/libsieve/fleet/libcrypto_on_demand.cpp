// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
// The functions of libcrypto that this project calls.
#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include "libsieve/util/library_on_demand.hpp"

namespace {

constexpr sieve::LibraryOnDemand libcrypto("libcrypto.so.3", "libssl3");

} // namespace

#define LIBCRYPTO(name) SIEVE_ON_DEMAND(libcrypto, name)

int BIO_free(BIO* bio) {
    return LIBCRYPTO(BIO_free)(bio);
}
BIO* BIO_new(const BIO_METHOD* type) {
    return LIBCRYPTO(BIO_new)(type);
}
BIO* BIO_new_mem_buf(const void* bytes, int size) {
    return LIBCRYPTO(BIO_new_mem_buf)(bytes, size);
}
const BIO_METHOD* BIO_s_mem() {
    return LIBCRYPTO(BIO_s_mem)();
}
long BIO_ctrl(BIO* bio, int what, long number, void* argument) {
    return LIBCRYPTO(BIO_ctrl)(bio, what, number, argument);
}
int EVP_DecodeBlock(unsigned char* to, const unsigned char* from, int size) {
    return LIBCRYPTO(EVP_DecodeBlock)(to, from, size);
}
int EVP_EncodeBlock(unsigned char* to, const unsigned char* from, int size) {
    return LIBCRYPTO(EVP_EncodeBlock)(to, from, size);
}
EVP_MD_CTX* EVP_MD_CTX_new() {
    return LIBCRYPTO(EVP_MD_CTX_new)();
}
void EVP_MD_CTX_free(EVP_MD_CTX* context) {
    LIBCRYPTO(EVP_MD_CTX_free)(context);
}
const EVP_MD* EVP_sha256() {
    return LIBCRYPTO(EVP_sha256)();
}
int EVP_DigestInit_ex(EVP_MD_CTX* context, const EVP_MD* type, ENGINE* engine) {
    return LIBCRYPTO(EVP_DigestInit_ex)(context, type, engine);
}
int EVP_DigestUpdate(EVP_MD_CTX* context, const void* bytes, size_t size) {
    return LIBCRYPTO(EVP_DigestUpdate)(context, bytes, size);
}
int EVP_DigestFinal_ex(EVP_MD_CTX* context, unsigned char* digest, unsigned int* size) {
    return LIBCRYPTO(EVP_DigestFinal_ex)(context, digest, size);
}
int EVP_DigestSignInit(EVP_MD_CTX* context, EVP_PKEY_CTX** key_context, const EVP_MD* type, ENGINE* engine,
                       EVP_PKEY* key) {
    return LIBCRYPTO(EVP_DigestSignInit)(context, key_context, type, engine, key);
}
int EVP_DigestSign(EVP_MD_CTX* context, unsigned char* signature, size_t* signature_size,
                   const unsigned char* bytes, size_t size) {
    return LIBCRYPTO(EVP_DigestSign)(context, signature, signature_size, bytes, size);
}
int EVP_DigestVerifyInit(EVP_MD_CTX* context, EVP_PKEY_CTX** key_context, const EVP_MD* type, ENGINE* engine,
                         EVP_PKEY* key) {
    return LIBCRYPTO(EVP_DigestVerifyInit)(context, key_context, type, engine, key);
}
int EVP_DigestVerify(EVP_MD_CTX* context, const unsigned char* signature, size_t signature_size,
                     const unsigned char* bytes, size_t size) {
    return LIBCRYPTO(EVP_DigestVerify)(context, signature, signature_size, bytes, size);
}
void EVP_PKEY_free(EVP_PKEY* key) {
    LIBCRYPTO(EVP_PKEY_free)(key);
}
int EVP_PKEY_get_id(const EVP_PKEY* key) {
    return LIBCRYPTO(EVP_PKEY_get_id)(key);
}
int EVP_PKEY_get_raw_public_key(const EVP_PKEY* key, unsigned char* to, size_t* size) {
    return LIBCRYPTO(EVP_PKEY_get_raw_public_key)(key, to, size);
}
EVP_PKEY* PEM_read_bio_PUBKEY(BIO* bio, EVP_PKEY** key, pem_password_cb* password, void* argument) {
    return LIBCRYPTO(PEM_read_bio_PUBKEY)(bio, key, password, argument);
}
EVP_PKEY* PEM_read_bio_PrivateKey(BIO* bio, EVP_PKEY** key, pem_password_cb* password, void* argument) {
    return LIBCRYPTO(PEM_read_bio_PrivateKey)(bio, key, password, argument);
}
int PEM_write_bio_PUBKEY(BIO* bio, const EVP_PKEY* key) {
    return LIBCRYPTO(PEM_write_bio_PUBKEY)(bio, key);
}
int PEM_write_bio_PrivateKey(BIO* bio, const EVP_PKEY* key, const EVP_CIPHER* cipher,
                             const unsigned char* passphrase, int size, pem_password_cb* password,
                             void* argument) {
    return LIBCRYPTO(PEM_write_bio_PrivateKey)(bio, key, cipher, passphrase, size, password, argument);
}

// Keys of the types that this project has take no further argument.
EVP_PKEY* EVP_PKEY_Q_keygen(OSSL_LIB_CTX* context, const char* properties, const char* type, ...) {
    return LIBCRYPTO(EVP_PKEY_Q_keygen)(context, properties, type);
}
