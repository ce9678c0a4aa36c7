import { execFileSync } from 'node:child_process'
import { closeSync, ftruncateSync, mkdirSync, mkdtempSync, openSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { versionOf } from './command.ts'

/** The mkfs command of each; xfs is here for its reflinks. */
const MAKE = {
  ext4: ['mkfs.ext4', '-q', '-F', '-E', 'lazy_itable_init=0,lazy_journal_init=0'],
  xfs: ['mkfs.xfs', '-q', '-m', 'reflink=1']
} as const

/** A mounted file system on a loop device; needs root and mkfs. */
export const hasLoopDisk = (kind: keyof typeof MAKE = 'ext4'): boolean =>
  process.platform === 'linux' && process.geteuid?.() === 0 && versionOf(`mkfs.${kind}`, '-V') !== undefined

/** Creates and mounts a file system in an image file in the temporary folder; `close` unmounts and deletes it. */
export class LoopDisk {
  readonly #folder: string
  readonly path: string

  constructor(sizeBytes: number, kind: keyof typeof MAKE = 'ext4') {
    this.#folder = mkdtempSync(join(tmpdir(), 'svc-bench-disk-'))
    this.path = join(this.#folder, 'mounted')
    const image = join(this.#folder, 'image')
    const fd = openSync(image, 'wx')
    ftruncateSync(fd, sizeBytes)
    closeSync(fd)
    mkdirSync(this.path)
    const [program, ...flags] = MAKE[kind]
    execFileSync(program, [...flags, image])
    execFileSync('mount', ['-o', 'loop', image, this.path])
  }

  close(): void {
    execFileSync('umount', [this.path])
    rmSync(this.#folder, { recursive: true, force: true })
  }
}
