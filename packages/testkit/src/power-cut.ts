import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const PLUGIN = fileURLToPath(new URL('./volatile_disk.py', import.meta.url))
const IMAGE_BYTES = 512 * 2 ** 20

export type FileSystem = 'ext4' | 'xfs'

/**
 * How the power goes.
 * - `shutdown`: the file system is shut down as it stands (`XFS_IOC_GOINGDOWN`), without flushing its log: what was not synced
 *   to the device is gone.
 * - `volatile`: below the file system lies a disk with a write cache (`volatile_disk.py`), of which a random part is lost.
 */
export type PowerCut = 'shutdown' | 'volatile'

const works = (command: string, ...args: string[]): boolean => spawnSync(command, args).status === 0

/** Why power cannot be cut on this machine; undefined where it can. Needs root, loop devices, xfsprogs, and nbdkit for `volatile`. */
export function whyNoPowerCuts(kind: PowerCut): string | undefined {
  if (process.getuid?.() !== 0) return 'needs root'
  if (!existsSync('/dev/loop-control')) return 'needs loop devices'
  if (!works('xfs_io', '-V') || !works('mkfs.xfs', '-V')) return 'needs xfsprogs'
  if (kind === 'volatile' && !works('nbdkit', 'python', '--version')) return 'needs nbdkit-plugin-python'
  if (kind === 'volatile' && !works('nbdfuse', '--version')) return 'needs libnbd-bin'
  return undefined
}

/** A file system on a loop device whose power can be cut. Everything it made is gone after {@link TestDisk.close}. */
export class TestDisk {
  readonly mountPoint: string
  readonly #folder: string
  readonly #image: string
  readonly #kind: PowerCut
  #seed: number
  #loop: string | undefined
  #nbd: { readonly file: string; readonly ended: Promise<unknown> } | undefined

  /** Makes the file system in `folder` and mounts it. The seed decides which writes a volatile cache loses. */
  static async create(folder: string, fileSystem: FileSystem, kind: PowerCut, seed: number): Promise<TestDisk> {
    const disk = new TestDisk(folder, kind, seed)
    writeFileSync(disk.#image, '')
    truncateSync(disk.#image, IMAGE_BYTES)
    execFileSync(`mkfs.${fileSystem}`, ['-q', disk.#image])
    mkdirSync(disk.mountPoint, { recursive: true })
    await disk.#mount()
    return disk
  }

  private constructor(folder: string, kind: PowerCut, seed: number) {
    this.#folder = folder
    this.#kind = kind
    this.#seed = seed
    this.#image = join(folder, 'disk.img')
    this.mountPoint = join(folder, 'mnt')
  }

  /** From now on nothing reaches the disk. Whoever uses it must be ended before {@link powerOn}. */
  cut(): void {
    if (this.#kind === 'volatile') {
      writeFileSync(`${this.#image}.cut`, '')
      // Any request makes the disk notice; the file system behind it then stops as well.
      spawnSync('dd', [`if=${this.#loop}`, 'of=/dev/null', 'bs=4096', 'count=1', 'iflag=direct', 'status=none'])
    }
    spawnSync('xfs_io', ['-x', '-c', 'shutdown', this.mountPoint])
  }

  /** Mounts what survived; the file system replays its log. */
  async powerOn(): Promise<void> {
    await this.#unmount()
    rmSync(`${this.#image}.cut`, { force: true })
    this.#seed += 1
    await this.#mount()
  }

  async close(): Promise<void> {
    await this.#unmount()
    rmSync(this.#image, { force: true })
  }

  async #mount(): Promise<void> {
    const file = this.#kind === 'volatile' ? await this.#startVolatileDisk() : this.#image
    this.#loop = execFileSync('losetup', ['--find', '--show', file], { encoding: 'utf8' }).trim()
    execFileSync('mount', [this.#loop, this.mountPoint])
  }

  async #startVolatileDisk(): Promise<string> {
    const file = join(this.#folder, 'volatile')
    writeFileSync(file, '')
    const child = spawn(
      'nbdfuse',
      [file, '[', 'nbdkit', '--exit-with-parent', 'python', PLUGIN, `image=${this.#image}`, `seed=${this.#seed}`, ']'],
      { stdio: 'ignore' }
    )
    const ended = new Promise((resolve) => child.once('close', resolve))
    this.#nbd = { file, ended }
    for (let tries = 0; ; tries += 1) {
      if (Number(execFileSync('stat', ['-c', '%s', file], { encoding: 'utf8' })) === IMAGE_BYTES) return file
      if (tries > 200 || child.exitCode !== null) throw new Error('the disk with a volatile cache did not start')
      await new Promise((resolve) => setTimeout(resolve, 25))
    }
  }

  async #unmount(): Promise<void> {
    for (let tries = 0; !works('umount', this.mountPoint); tries += 1) {
      if (!works('mountpoint', '-q', this.mountPoint)) break
      if (tries > 100) throw new Error(`${this.mountPoint} stays busy`)
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    if (this.#loop !== undefined) works('losetup', '-d', this.#loop)
    this.#loop = undefined
    const nbd = this.#nbd
    this.#nbd = undefined
    if (nbd === undefined) return
    for (let tries = 0; !works('fusermount3', '-u', nbd.file) && tries < 100; tries += 1) {
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    await nbd.ended
  }
}
