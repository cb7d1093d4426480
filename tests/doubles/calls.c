/* Preloaded into a process: tells of every call that changes a file below a folder before it is made.
 *
 * MNEME_CALLS_FOLDER is the folder, and MNEME_CALLS_SOCKET the two descriptors (out,in) of a listener. For
 * each call a line "KIND PATH[<TAB>PATH OR OFFSET]" goes out, and the call waits for an answer of four bytes:
 * 0 to go on, a number of errno to fail with it, or -1 to be killed. Whatever is done meanwhile sees the files
 * as they are before the call.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER;
static const char *folder;
static int out = -1, in = -1;

__attribute__((constructor)) static void begin(void) {
    const char *given = getenv("MNEME_CALLS_SOCKET");
    folder = getenv("MNEME_CALLS_FOLDER");
    if (!folder || !given || sscanf(given, "%d,%d", &out, &in) != 2) out = -1;
}

#define REAL(type, name, ...) \
    static type (*real)(__VA_ARGS__); \
    if (!real) real = (type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

static int below(const char *path) {
    size_t length = folder ? strlen(folder) : 0;
    return out >= 0 && path && !strncmp(path, folder, length) && (path[length] == '/' || !path[length]);
}

static int ask(const char *kind, const char *path, const char *more) {
    REAL(ssize_t, "write", int, const void *, size_t);
    char line[3 * PATH_MAX];
    int length, answer = 0, kept = errno;
    if (!below(path) && !below(more)) return 0;
    length = snprintf(line, sizeof line, "%s %s\t%s\n", kind, path, more ? more : "");
    pthread_mutex_lock(&one);
    if (real(out, line, length) != length || read(in, &answer, sizeof answer) != sizeof answer) answer = 0;
    pthread_mutex_unlock(&one);
    if (answer < 0) kill(getpid(), SIGKILL);
    errno = answer ? answer : kept;
    return answer;
}

static const char *of(int fd, char *path) {
    char link[64];
    ssize_t length;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    length = readlink(link, path, PATH_MAX - 1);
    if (length < 0) return NULL;
    path[length] = 0;
    return path;
}

static const char *at(int dir, const char *name, char *path) {
    char base[PATH_MAX];
    const char *root = dir == AT_FDCWD ? getcwd(base, sizeof base) : of(dir, base);
    if (name[0] == '/') return name;
    snprintf(path, PATH_MAX, "%s/%s", root ? root : "", name);
    return path;
}

static int ask_fd(const char *kind, int fd) {
    char path[PATH_MAX];
    return fd == out ? 0 : ask(kind, of(fd, path), NULL);
}

static int ask_at(const char *kind, int dir, const char *name) {
    char path[PATH_MAX];
    return ask(kind, at(dir, name, path), NULL);
}

static int ask_two(int from, const char *old, int to, const char *new) {
    char first[PATH_MAX], second[PATH_MAX];
    return ask("rename", at(from, old, first), at(to, new, second));
}

/* The range of a mapping, as "OFFSET+LENGTH" in its file. */
static int ask_mapped(void *address, size_t length) {
    char line[PATH_MAX + 128], path[PATH_MAX], range[64];
    unsigned long begins, ends, offset;
    FILE *maps = fopen("/proc/self/maps", "re");
    int answer = 0;
    while (maps && fgets(line, sizeof line, maps)) {
        path[0] = 0;
        if (sscanf(line, "%lx-%lx %*s %lx %*s %*s %4095[^\n]", &begins, &ends, &offset, path) < 3) continue;
        if ((unsigned long)address < begins || (unsigned long)address >= ends) continue;
        snprintf(range, sizeof range, "%lu+%zu", offset + ((unsigned long)address - begins), length);
        answer = ask("msync", path, range);
        break;
    }
    if (maps) fclose(maps);
    return answer;
}

#define ON_FD(type, name, kind, parameters, arguments) \
    type name parameters { \
        REAL(type, #name, TYPES parameters); \
        return ask_fd(kind, fd) ? -1 : real arguments; \
    }
#define TYPES(...) __VA_ARGS__

ON_FD(ssize_t, write, "write", (int fd, const void *data, size_t size), (fd, data, size))
ON_FD(ssize_t, pwrite, "write", (int fd, const void *data, size_t size, off_t to), (fd, data, size, to))
ON_FD(ssize_t, pwrite64, "write", (int fd, const void *data, size_t size, off64_t to), (fd, data, size, to))
ON_FD(ssize_t, writev, "write", (int fd, const struct iovec *data, int count), (fd, data, count))
ON_FD(int, ftruncate, "truncate", (int fd, off_t size), (fd, size))
ON_FD(int, ftruncate64, "truncate", (int fd, off64_t size), (fd, size))
ON_FD(int, fsync, "sync", (int fd), (fd))
ON_FD(int, fdatasync, "sync", (int fd), (fd))

int posix_fallocate64(int fd, off64_t offset, off64_t size) {
    REAL(int, "posix_fallocate64", int, off64_t, off64_t);
    int refused = ask_fd("truncate", fd);
    return refused ? refused : real(fd, offset, size);
}

int msync(void *address, size_t size, int flags) {
    REAL(int, "msync", void *, size_t, int);
    return (flags & MS_SYNC) && ask_mapped(address, size) ? -1 : real(address, size, flags);
}

#define ON_NAME(name, kind) \
    int name(const char *path) { \
        REAL(int, #name, const char *); \
        return ask_at(kind, AT_FDCWD, path) ? -1 : real(path); \
    }
ON_NAME(unlink, "remove")
ON_NAME(rmdir, "remove")

int unlinkat(int dir, const char *path, int flags) {
    REAL(int, "unlinkat", int, const char *, int);
    return ask_at("remove", dir, path) ? -1 : real(dir, path, flags);
}

int mkdir(const char *path, mode_t mode) {
    REAL(int, "mkdir", const char *, mode_t);
    return ask_at("create", AT_FDCWD, path) ? -1 : real(path, mode);
}

int rename(const char *old, const char *new) {
    REAL(int, "rename", const char *, const char *);
    return ask_two(AT_FDCWD, old, AT_FDCWD, new) ? -1 : real(old, new);
}

int renameat(int from, const char *old, int to, const char *new) {
    REAL(int, "renameat", int, const char *, int, const char *);
    return ask_two(from, old, to, new) ? -1 : real(from, old, to, new);
}

int renameat2(int from, const char *old, int to, const char *new, unsigned flags) {
    REAL(int, "renameat2", int, const char *, int, const char *, unsigned);
    return ask_two(from, old, to, new) ? -1 : real(from, old, to, new, flags);
}

/* Only an opening that makes the file, or cuts it, changes anything. */
static int ask_open(int dir, const char *name, int flags) {
    char path[PATH_MAX];
    struct stat found;
    if (!(flags & (O_CREAT | O_TRUNC))) return 0;
    at(dir, name, path);
    if (stat(name[0] == '/' ? name : path, &found)) return (flags & O_CREAT) ? ask_at("create", dir, name) : 0;
    return (flags & O_TRUNC) ? ask_at("truncate", dir, name) : 0;
}

#define MODE va_list more; mode_t mode; va_start(more, flags); mode = (flags & O_CREAT) ? va_arg(more, mode_t) : 0; va_end(more)
#define OPENING(name) \
    int name(const char *path, int flags, ...) { \
        REAL(int, #name, const char *, int, mode_t); \
        MODE; \
        return ask_open(AT_FDCWD, path, flags) ? -1 : real(path, flags, mode); \
    }
#define OPENING_AT(name) \
    int name(int dir, const char *path, int flags, ...) { \
        REAL(int, #name, int, const char *, int, mode_t); \
        MODE; \
        return ask_open(dir, path, flags) ? -1 : real(dir, path, flags, mode); \
    }
OPENING(open)
OPENING(open64)
OPENING_AT(openat)
OPENING_AT(openat64)
