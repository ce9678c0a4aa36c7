// The real release of this platform, with the official Node inside: made twice, installed, unpacked, and run as its container would.
import { execFile, spawnSync } from 'node:child_process'
import { chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { makeModelFolder } from '../packages/testkit/src/models.ts'
import { PLATFORMS, type Platform, RUNTIMES } from '../scripts/dist/runtimes.ts'
import { type As, useInstalled } from './installed.ts'

const run = promisify(execFile)
const root = resolve(import.meta.dirname, '..')
// Not below a folder that is closed to others: an ordinary user runs what lies here.
const scratch = mkdtempSync(join(tmpdir(), 'svc-dist-'))
spawnSync('chmod', ['755', scratch])
afterAll(() => rmSync(scratch, { recursive: true, force: true }))

const platform = PLATFORMS.find((each) => each === `${process.platform}-${process.arch}`)
const out = join(scratch, 'out')
const dist = (...args: string[]) =>
  run(
    process.execPath,
    [
      '--conditions=svc-source',
      join(root, 'scripts/dist/main.ts'),
      ...(args.includes('--platform') ? [] : ['--platform', 'this']),
      ...args
    ],
    {
      cwd: scratch
    }
  )

const NETWORK = /code (?:ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH)\b/
let unreachable: string | undefined
beforeAll(async () => {
  if (platform === undefined) return
  try {
    await dist('--out', out)
  } catch (error) {
    if (!NETWORK.test((error as { stderr?: string }).stderr ?? '') || process.env.SVC_REQUIRE_INTEROP === '1')
      throw error
    unreachable = 'the package registry cannot be reached'
  }
})

const released = (name: string, work: () => Promise<void>, runs = true): void =>
  it.skipIf(!runs || platform === undefined)(name, async ({ skip }) => {
    skip(unreachable !== undefined, unreachable)
    await work()
  })

/** Imports a model and reads it back, through nothing but the programs. */
async function hasFirstHour(bin: string, home: string, as?: As): Promise<void> {
  makeModelFolder(join(home, 'tiny'), { ggufs: { q8_0: 'Q8_0' } })
  await useInstalled(bin, home, as).withDaemon(async (svc) => {
    await svc('import', 'local', join(home, 'tiny'), '--as', 'acme/tiny')
    expect(await svc('ls', '--quiet')).toBe('acme/tiny:bf16\nacme/tiny:q8_0\n')
    await svc('verify')
    const { findings } = JSON.parse(await svc('doctor', '--json')) as { findings: { check: string; text: string }[] }
    expect(findings.find(({ check }) => check === 'node')?.text).toContain(`Node ${RUNTIMES[platform!].version}, `)
  })
}

/** What a program says of itself: its machine, and for macOS whether a signature ends the file as the signer left it. */
function headerOf(program: Buffer): string {
  if (program.readUInt32BE(0) === 0x7f454c46) return `elf ${program.readUInt16LE(18)}`
  expect(program.readUInt32LE(0)).toBe(0xfeedfacf)
  for (let i = 0, at = 32; i < program.readUInt32LE(16); i++) {
    // LC_CODE_SIGNATURE
    if (program.readUInt32LE(at) === 0x1d) {
      const [from, size] = [program.readUInt32LE(at + 8), program.readUInt32LE(at + 12)]
      expect([from + size, program.readUInt32BE(from)]).toEqual([program.length, 0xfade0cc0])
      return `mach-o ${program.readUInt32LE(4).toString(16)} signed`
    }
    at += program.readUInt32LE(at + 4)
  }
  return 'mach-o unsigned'
}
const HEADERS: Readonly<Record<Platform, string>> = {
  'linux-x64': 'elf 62',
  'linux-arm64': 'elf 183',
  'darwin-x64': 'mach-o 1000007 signed',
  'darwin-arm64': 'mach-o 100000c signed'
}

describe('pnpm dist', () => {
  for (const other of PLATFORMS.filter((each) => each !== platform)) {
    released(`the archive for ${other} has that platform's Node, untouched`, async () => {
      const folder = join(scratch, other)
      await dist('--platform', other, '--out', folder)
      const [archive] = readdirSync(folder).filter((name) => name.endsWith(`-${other}.tar.gz`))
      mkdirSync(join(folder, 'unpacked'))
      await run('tar', ['-xzf', join(folder, archive!), '-C', join(folder, 'unpacked'), '--strip-components=1'])
      const node = join(folder, 'unpacked/lib/svc/node')
      expect(headerOf(readFileSync(node))).toBe(HEADERS[other])
      expect(statSync(node).mode & 0o111).toBe(0o111)
      const { name, version } = RUNTIMES[other]
      const kept = join(root, 'node_modules/.cache/svc-dist', `${name}-${version}.tgz`)
      const { stdout } = await run('tar', ['-xzOf', kept, 'package/bin/node'], {
        encoding: 'buffer',
        maxBuffer: 2 ** 28
      })
      expect(stdout.equals(readFileSync(node))).toBe(true)
    })
  }

  released('gives the same bytes twice', async () => {
    const again = join(scratch, 'again')
    await dist('--out', again)
    expect(readFileSync(join(again, 'SHA256SUMS'), 'utf8')).toBe(readFileSync(join(out, 'SHA256SUMS'), 'utf8'))
    expect(readdirSync(again).length).toBeGreaterThan(2)
  })

  released('an archive that is unpacked runs where it lies, without any other Node', async () => {
    const folder = join(scratch, 'unpacked')
    mkdirSync(folder)
    const [archive] = readdirSync(out).filter((name) => name.endsWith('.tar.gz'))
    await run('tar', ['-xzf', join(out, archive!), '-C', folder, '--strip-components=1'])
    const home = join(scratch, 'home-archive')
    mkdirSync(home)
    await hasFirstHour(join(folder, 'bin'), home)
  })

  released('install.sh installs it', async () => {
    const home = join(scratch, 'home-installed')
    mkdirSync(home)
    await run('sh', [join(out, 'install.sh')], { env: { HOME: home, PATH: '/usr/bin:/bin' } })
    await hasFirstHour(join(home, '.local/bin'), home)
  })

  const dpkg = spawnSync('dpkg-deb', ['--version']).error === undefined
  released(
    'dpkg installs the package, and takes it away',
    async () => {
      const [deb] = readdirSync(out).filter((name) => name.endsWith('.deb'))
      const place = join(scratch, 'system')
      for (const folder of ['info', 'updates']) mkdirSync(join(place, 'var/lib/dpkg', folder), { recursive: true })
      await run('touch', [join(place, 'var/lib/dpkg/status'), join(place, 'var/lib/dpkg/available')])
      const apart = ['--root', place, '--force-depends', '--force-not-root', '--log', '/dev/null']
      await run('dpkg', [...apart, '--install', join(out, deb!)])
      const home = join(scratch, 'home-deb')
      mkdirSync(home)
      await hasFirstHour(join(place, 'usr/bin'), home)
      await run('dpkg', [...apart, '--remove', 'svc'])
      expect(existsSync(join(place, 'usr/bin/svc'))).toBe(false)
    },
    dpkg
  )

  released(
    'the tree of the container runs as an ordinary user',
    async () => {
      const image = join(scratch, 'image')
      await dist('--tree', join(image, 'usr'))
      const home = join(scratch, 'home-image')
      mkdirSync(home)
      chownSync(home, 10001, 10001)
      await hasFirstHour(join(image, 'usr/bin'), home, { uid: 10001, gid: 10001 })
    },
    process.getuid?.() === 0
  )
})
