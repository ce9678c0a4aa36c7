import * as fs from 'node:fs'

/** The fields of a file's status that the store uses. */
export type FileStat = Pick<
  fs.Stats,
  'size' | 'mode' | 'uid' | 'dev' | 'ino' | 'mtimeMs' | 'ctimeMs' | 'isFile' | 'isDirectory'
>

/**
 * Every file operation of store and state, in this thread and in its workers. The `…Sync` half runs in worker threads, while the
 * store opens, and for reads that `QuickReads` allows; the promised half on the event loop's thread. Semantics are those of `node:fs`;
 * `read` and `write` may be short. Tests replace it to make the N-th operation fail (see `Faults`).
 */
export interface FilePort {
  openSync(path: string, flags: number, mode?: number): number
  closeSync(fd: number): void
  readSync(fd: number, target: Uint8Array, offset: number, length: number, position: number): number
  writeSync(fd: number, bytes: Uint8Array, offset: number, length: number, position: number): number
  fstatSync(fd: number): FileStat
  lstatSync(path: string): FileStat
  /** Undefined for a name that is not there. */
  tryLstatSync(path: string): FileStat | undefined
  fsyncSync(fd: number): void
  fchmodSync(fd: number, mode: number): void
  chmodSync(path: string, mode: number): void
  linkSync(existing: string, path: string): void
  renameSync(from: string, to: string): void
  unlinkSync(path: string): void
  mkdirSync(path: string, mode: number): void
  readdirSync(path: string): string[]

  open(path: string, flags: number, mode?: number): Promise<number>
  close(fd: number): Promise<void>
  read(fd: number, target: Uint8Array, offset: number, length: number, position: number): Promise<number>
  write(fd: number, bytes: Uint8Array, offset: number, length: number, position: number): Promise<number>
  fstat(fd: number): Promise<FileStat>
  lstat(path: string): Promise<FileStat>
  fsync(fd: number): Promise<void>
  fdatasync(fd: number): Promise<void>
  fchmod(fd: number, mode: number): Promise<void>
  fchown(fd: number, uid: number, gid: number): Promise<void>
  rename(from: string, to: string): Promise<void>
  unlink(path: string): Promise<void>
  mkdir(path: string, mode: number): Promise<void>
  /**
   * Creates `path` as a file that shares its blocks with the open file `fd`; fails with `ENOTSUP` or the like if that
   * is impossible.
   */
  clone(fd: number, path: string): Promise<void>
  rmdir(path: string): Promise<void>
  readdir(path: string): Promise<string[]>
  statfs(path: string): Promise<{ readonly bavail: number; readonly bsize: number; readonly type: number }>
}

/** A port by module, so that worker threads can load it, too: its default export is `(options) => FilePort`. */
export interface FilePortModule {
  readonly module: string
  readonly options?: unknown
}
/** The default export of a {@link FilePortModule}: called once in each thread, with the module's `options`. */
export type FilePortFactory = (options: unknown) => FilePort

type Done<T> = (error: NodeJS.ErrnoException | null, value?: T) => void
const promised = <T>(start: (done: Done<T>) => void): Promise<T> =>
  new Promise((resolve, reject) => start((error, value) => (error ? reject(error) : resolve(value as T))))

/** FORCE, since plain FICLONE silently copies if blocks cannot be shared. */
const CLONE = fs.constants.COPYFILE_EXCL | fs.constants.COPYFILE_FICLONE_FORCE

/** The operating system's files. Descriptors are plain integers: nothing closes them without the store's knowledge. */
export const nodeFilePort: FilePort = {
  openSync: (path, flags, mode) => fs.openSync(path, flags, mode),
  closeSync: (fd) => fs.closeSync(fd),
  readSync: (fd, target, offset, length, position) => fs.readSync(fd, target, offset, length, position),
  writeSync: (fd, bytes, offset, length, position) => fs.writeSync(fd, bytes, offset, length, position),
  fstatSync: (fd) => fs.fstatSync(fd),
  lstatSync: (path) => fs.lstatSync(path),
  tryLstatSync: (path) => fs.lstatSync(path, { throwIfNoEntry: false }),
  fsyncSync: (fd) => fs.fsyncSync(fd),
  fchmodSync: (fd, mode) => fs.fchmodSync(fd, mode),
  chmodSync: (path, mode) => fs.chmodSync(path, mode),
  linkSync: (existing, path) => fs.linkSync(existing, path),
  renameSync: (from, to) => fs.renameSync(from, to),
  unlinkSync: (path) => fs.unlinkSync(path),
  mkdirSync: (path, mode) => fs.mkdirSync(path, mode),
  readdirSync: (path) => fs.readdirSync(path),

  open: (path, flags, mode) => promised((done) => fs.open(path, flags, mode, done)),
  close: (fd) => promised((done) => fs.close(fd, done)),
  read: (fd, target, offset, length, position) =>
    promised((done) => fs.read(fd, target, offset, length, position, done)),
  write: (fd, bytes, offset, length, position) =>
    promised((done) => fs.write(fd, bytes, offset, length, position, done)),
  fstat: (fd) => promised((done) => fs.fstat(fd, done)),
  lstat: (path) => promised((done) => fs.lstat(path, done)),
  fsync: (fd) => promised((done) => fs.fsync(fd, done)),
  fdatasync: (fd) => promised((done) => fs.fdatasync(fd, done)),
  fchmod: (fd, mode) => promised((done) => fs.fchmod(fd, mode, done)),
  fchown: (fd, uid, gid) => promised((done) => fs.fchown(fd, uid, gid, done)),
  rename: (from, to) => promised((done) => fs.rename(from, to, done)),
  unlink: (path) => promised((done) => fs.unlink(path, done)),
  clone: (fd, path) =>
    process.platform === 'linux'
      ? promised((done) => fs.copyFile(`/proc/self/fd/${fd}`, path, CLONE, (error) => done(error)))
      : Promise.reject(Object.assign(new Error('no clones by descriptor here'), { code: 'ENOTSUP' })),
  mkdir: (path, mode) => promised((done) => fs.mkdir(path, mode, (error) => done(error))),
  rmdir: (path) => promised((done) => fs.rmdir(path, done)),
  readdir: (path) => promised((done) => fs.readdir(path, done)),
  statfs: (path) => promised((done) => fs.statfs(path, done))
}

/** Loads the port that a module describes; without one, {@link nodeFilePort}. */
export async function loadFilePort(from: FilePortModule | undefined): Promise<FilePort> {
  if (from === undefined) return nodeFilePort
  const loaded = (await import(from.module)) as { readonly default: FilePortFactory }
  return loaded.default(from.options)
}
