import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const PLUGIN = fileURLToPath(new URL('./recording_disk.py', import.meta.url))
const IMAGE_BYTES = 512 * 2 ** 20

export type FileSystem = 'ext4' | 'xfs'

/**
 * How the power fails.
 * - `shutdown`: the file system is shut down as it is (`XFS_IOC_GOINGDOWN`), without flushing its log: everything not
 *   synced to the device is lost.
 * - `volatile`: writes below the file system are recorded (`recording_disk.py`), and `BlockLog` computes what a disk
 *   with a write cache would hold after a cut at any moment.
 */
export type PowerCut = 'shutdown' | 'volatile'

const works = (command: string, ...args: string[]): boolean => spawnSync(command, args).status === 0

/** A mount stays busy as long as another program's mount namespace has it, too, which may be minutes. */
async function untilItWorks(command: string, ...args: string[]): Promise<void> {
  for (let tries = 0; !works(command, ...args); tries += 1) {
    if (tries > 6_000) throw new Error(`${command} ${args.join(' ')} does not succeed`)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

/**
 * The device of a file stays attached for as long as the file system on it is mounted in some mount namespace: one that another program
 * made just now has a copy of the mount. XFS would refuse to be mounted a second time, and ext4 would not.
 */
async function untilDetached(device: string, file: string): Promise<void> {
  works('losetup', '-d', device)
  const isAttached = (): boolean => execFileSync('losetup', ['-j', file], { encoding: 'utf8' }) !== ''
  for (let tries = 0; isAttached(); tries += 1) {
    if (tries > 6_000) throw new Error(`${file} is still in use`)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

/**
 * Why power cuts cannot be simulated on this machine; undefined if they can. Needs root, loop devices, xfsprogs, and
 * nbdkit for `volatile`.
 */
export function whyNoPowerCuts(kind: PowerCut): string | undefined {
  if (process.getuid?.() !== 0) return 'needs root'
  if (!existsSync('/dev/loop-control')) return 'needs loop devices'
  if (!works('xfs_io', '-V') || !works('mkfs.xfs', '-V')) return 'needs xfsprogs'
  if (!works('eatmydata', 'true')) return 'needs eatmydata'
  if (kind === 'volatile' && !works('nbdkit', 'python', '--version')) return 'needs nbdkit-plugin-python'
  if (kind === 'volatile' && !works('nbdfuse', '--version')) return 'needs libnbd-bin'
  return undefined
}

/** Creates an empty file system in a file. */
export function makeFileSystem(image: string, fileSystem: FileSystem): void {
  writeFileSync(image, '')
  truncateSync(image, IMAGE_BYTES)
  execFileSync(`mkfs.${fileSystem}`, ['-q', image])
}

/** A file system in a file, mounted through a loop device. {@link TestDisk.close} removes everything but the image. */
export class TestDisk {
  readonly mountPoint: string
  readonly #folder: string
  readonly #image: string
  readonly #log: string | undefined
  #loop: { readonly device: string; readonly file: string } | undefined
  #nbd: { readonly file: string; readonly ended: Promise<unknown> } | undefined

  /** Mounts `image` at `<folder>/mnt`. With `log`, all writes are recorded there. */
  static async mount(folder: string, image: string, log?: string): Promise<TestDisk> {
    const disk = new TestDisk(folder, image, log)
    mkdirSync(disk.mountPoint, { recursive: true })
    await disk.#mount()
    return disk
  }

  private constructor(folder: string, image: string, log: string | undefined) {
    this.#folder = folder
    this.#image = image
    this.#log = log
    this.mountPoint = join(folder, 'mnt')
  }

  /** The position in the log: everything the disk has confirmed lies before it. */
  get position(): number {
    return this.#log === undefined ? 0 : statSync(this.#log).size
  }

  /** Shuts the file system down: nothing reaches the disk any longer. End its users before {@link powerOn}. */
  cut(): void {
    spawnSync('xfs_io', ['-x', '-c', 'shutdown', this.mountPoint])
  }

  /** Mounts what survived; the file system replays its log. */
  async powerOn(): Promise<void> {
    await this.close()
    await this.#mount()
  }

  async close(): Promise<void> {
    // a file system that was shut down does not respond, so its folder does not show whether it is mounted
    if (readFileSync('/proc/mounts', 'utf8').includes(` ${this.mountPoint} `)) {
      await untilItWorks('umount', this.mountPoint)
    }
    if (this.#loop !== undefined) await untilDetached(this.#loop.device, this.#loop.file)
    this.#loop = undefined
    const nbd = this.#nbd
    this.#nbd = undefined
    if (nbd === undefined) return
    await untilItWorks('fusermount3', '-u', nbd.file)
    await nbd.ended
  }

  async #mount(): Promise<void> {
    const file = this.#log === undefined ? this.#image : await this.#startRecording(this.#log)
    const device = execFileSync('losetup', ['--find', '--show', file], { encoding: 'utf8' }).trim()
    this.#loop = { device, file }
    execFileSync('mount', [device, this.mountPoint])
  }

  async #startRecording(log: string): Promise<string> {
    const file = join(this.#folder, 'recorded')
    writeFileSync(file, '')
    rmSync(log, { force: true })
    const child = spawn(
      'nbdfuse',
      [file, '[', 'nbdkit', '--exit-with-parent', 'python', PLUGIN, `image=${this.#image}`, `log=${log}`, ']'],
      { stdio: 'ignore' }
    )
    const ended = new Promise((resolve) => child.once('close', resolve))
    this.#nbd = { file, ended }
    for (let tries = 0; ; tries += 1) {
      if (Number(execFileSync('stat', ['-c', '%s', file], { encoding: 'utf8' })) === IMAGE_BYTES) return file
      if (tries > 400 || child.exitCode !== null) throw new Error('the recording disk did not start')
      await new Promise((resolve) => setTimeout(resolve, 25))
    }
  }
}
