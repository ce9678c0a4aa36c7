// Installs the packed tarballs as a stranger would, and runs what that gives: with the oldest Node that is promised, with
// the one of this repository, and with one that is too old.
import { execFile, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  createReadStream,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync
} from 'node:fs'
import { lstat, mkdir, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startFakeCatalog } from '../packages/testkit/src/fake-catalog.ts'
import { startFakeHub } from '../packages/testkit/src/fake-hub.ts'
import { haveLibtorrent, startV1Peer } from '../packages/testkit/src/v1-peer.ts'
import { type PackageJson, packAll, packages } from './tarballs.ts'

const run = promisify(execFile)
/** Of CPU: how fast the registry answers is not the packages' doing. */
const MAX_SECONDS = 20
const MAX_BYTES = 60e6
/** The oldest Node that the packages promise. */
const OLDEST = packages.map(({ json }) => json.engines!.node!.replace('>=', ''))[0]!

const scratch = mkdtempSync(join(tmpdir(), 'svc-install-'))
const prefix = join(scratch, 'prefix')
const modules = join(prefix, 'lib', 'node_modules')
const cleanups: (() => unknown)[] = [() => rmSync(scratch, { recursive: true, force: true })]
afterAll(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

/** npm as it comes: without what pnpm, which runs the tests, tells its children. */
const npmEnv = Object.fromEntries(
  Object.entries(process.env).filter(([key]) => !/^npm_(?!config_(?:registry|cache)$)/i.test(key))
)
/** Installs, and returns the CPU seconds that it took. */
async function npm(args: readonly string[], path = npmEnv.PATH): Promise<number> {
  const command = ['npm', 'install', '--no-audit', '--no-fund', '--prefer-offline', ...args]
  const { stdout } = await run('/bin/sh', ['-c', '"$@" && times', 'sh', ...command], {
    env: { ...npmEnv, PATH: path },
    maxBuffer: 2 ** 24
  })
  // its last line: user and system time of what the shell ran, each as 0m1.23s
  const last = stdout.trimEnd().split('\n').at(-1)!
  const times = [...last.matchAll(/(\d+)m([\d.]+)s/g)]
  expect(times).toHaveLength(2)
  return times.reduce((sum, [, minutes, seconds]) => sum + Number(minutes) * 60 + Number(seconds), 0)
}

const NETWORK =
  /^npm error code (?:ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ENETUNREACH|ERR_SOCKET_TIMEOUT)$/m
let unreachable: string | undefined
let cpuSeconds = 0
let oldest = ''

beforeAll(async () => {
  const tarballs = join(scratch, 'tarballs')
  const node = join(scratch, 'node')
  mkdirSync(node)
  try {
    const [tarball] = await Promise.all([packAll(tarballs), npm(['--prefix', node, `node@${OLDEST}`])])
    oldest = join(node, 'node_modules', 'node', 'bin', 'node')
    cpuSeconds = await npm(
      ['--global', '--prefix', prefix, ...packages.map(({ name }) => tarball(name))],
      [dirname(oldest), npmEnv.PATH].join(delimiter)
    )
  } catch (error) {
    const { stderr } = error as { stderr?: string }
    if (stderr === undefined || !NETWORK.test(stderr) || process.env.SVC_REQUIRE_INTEROP === '1') throw error
    unreachable = 'the package registry cannot be reached'
  }
})

const installed = (name: string, test_: (nodes: readonly string[]) => Promise<void>) =>
  test(name, async ({ skip }) => {
    skip(unreachable !== undefined, unreachable)
    await test_([oldest, process.execPath])
  })

describe('npm install --global of every tarball, with default settings', () => {
  installed(`takes less than ${MAX_SECONDS} s of CPU and ${MAX_BYTES / 1e6} MB`, async () => {
    let bytes = 0
    for (const file of globSync('**', { cwd: modules })) {
      const stat = await lstat(join(modules, file))
      if (stat.isFile()) bytes += stat.size
    }
    console.info(`installed with ${cpuSeconds.toFixed(1)} s of CPU, ${(bytes / 1e6).toFixed(1)} MB`)
    expect(cpuSeconds).toBeGreaterThan(0)
    expect(cpuSeconds).toBeLessThan(MAX_SECONDS)
    expect(bytes).toBeLessThan(MAX_BYTES)
  })

  installed('runs no install script and brings no native code', async () => {
    const manifests = globSync('**/package.json', { cwd: modules }).filter((path) =>
      /node_modules\/(?:@[^/]+\/)?[^/]+\/package\.json$|^@svc\/[^/]+\/package\.json$/.test(path)
    )
    expect(manifests.length).toBeGreaterThan(packages.length)
    const scripted = manifests.filter((path) => {
      const { scripts = {} } = JSON.parse(readFileSync(join(modules, path), 'utf8')) as {
        scripts?: Record<string, string>
      }
      return ['preinstall', 'install', 'postinstall'].some((script) => script in scripts)
    })
    expect(scripted).toEqual([])
    expect(globSync('**/{*.node,binding.gyp}', { cwd: modules })).toEqual([])
  })

  installed('every entry of every package can be required and imported', async (nodes) => {
    const entries = packages.flatMap(({ name, json }) =>
      Object.keys(json.exports ?? {})
        .filter((key) => key !== './package.json')
        .map((key) => name + key.slice(1))
    )
    // required first: a module that is loaded already would hide a top-level await.
    const probe = join(prefix, 'lib', 'probe.mjs')
    writeFileSync(
      probe,
      `import { createRequire } from 'node:module'
      const require = createRequire(import.meta.url)
      const names = {}
      for (const entry of process.argv.slice(2)) {
        const required = Object.keys(require(entry))
        const imported = Object.keys(await import(entry))
        names[entry] = required.filter((name) => imported.includes(name)).length
      }
      console.log(JSON.stringify(names))`
    )
    for (const node of nodes) {
      const { stdout } = await run(node, [probe, ...entries])
      const names = JSON.parse(stdout) as Record<string, number>
      expect(Object.keys(names)).toEqual(entries)
      expect(Object.entries(names).filter(([, count]) => count === 0)).toEqual([])
    }
  })

  installed('the licences of what is bundled go along', async () => {
    for (const [name, bundled] of [
      ['@svc/swarm', 'bittorrent-dht'],
      ['@svc/swarm-v1', 'webtorrent']
    ] as const) {
      const text = readFileSync(join(modules, name, 'dist/THIRD-PARTY-LICENSES'), 'utf8')
      expect(text).toMatch(new RegExp(`^${bundled}@\\d+\\.\\d+\\.\\d+ \\(MIT\\)\n\n[^]{200}`, 'm'))
      const json = JSON.parse(readFileSync(join(modules, name, 'package.json'), 'utf8')) as PackageJson
      expect(Object.keys(json.dependencies ?? {})).not.toContain(bundled)
    }
  })

  installed('both programs run', async (nodes) => {
    for (const node of nodes) {
      for (const program of ['svc', 'svcd']) {
        const { stdout } = await run(node, [join(prefix, 'bin', program), '--version'])
        expect(stdout).toMatch(/\d+\.\d+\.\d+\n$/)
      }
    }
  })
})

describe('a Node that is too old', () => {
  // whatever old one this machine has, and this one under another name.
  const preload = join(scratch, 'old.cjs')
  writeFileSync(
    preload,
    "Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '12.22.0' } })"
  )
  const old = (process.env.PATH ?? '')
    .split(delimiter)
    .map((folder) => join(folder, 'node'))
    .filter((path) => existsSync(path))
    .find((path) => Number(execFileSync(path, ['-p', 'process.versions.node']).toString().split('.')[0]) < 22)
  const ways = [
    ['pretended', process.execPath, ['--require', preload]] as const,
    ...(old ? [['real', old, []] as const] : [])
  ]

  test.each(
    ways.flatMap((way) =>
      packages.flatMap(({ folder, json }) =>
        Object.entries(json.bin ?? {}).map((bin) => [...way, folder, ...bin] as const)
      )
    )
  )('%s (%s %s): %s %s says which one it needs', async (_, node, flags, folder, program, path) => {
    const entry = join(import.meta.dirname, '../packages', folder, path)
    const failure = await run(node, [...flags, entry, '--version']).catch(
      (error: { code: number; stdout: string; stderr: string }) => error
    )
    expect(failure).toMatchObject({ code: 2, stdout: '' })
    expect(failure.stderr.split('\n')).toHaveLength(3)
    expect(failure.stderr).toContain(`${program}: needs Node.js ${OLDEST}`)
  })
})

describe.skipIf(!haveLibtorrent)('from that installation', () => {
  installed('a catalog pull fetches a model from its BitTorrent v1 swarm', async ([node]) => {
    const content = Buffer.concat([Buffer.from(`GGUF\x03\0\0\0${'\0'.repeat(16)}`, 'latin1'), Buffer.alloc(700_000, 7)])
    const hub = await startFakeHub()
    cleanups.push(() => hub.close())
    const catalog = await startFakeCatalog()
    cleanups.push(() => catalog.close())
    const commit = hub.commit({ id: 'Org/Model-GGUF', files: [{ path: 'model-q8_0.gguf', content, lfs: true }] })
    const folder = join(scratch, 'seed')
    await mkdir(join(folder, 'model'), { recursive: true })
    await writeFile(join(folder, 'model', 'model-q8_0.gguf'), content)
    const seed = await startV1Peer({ mode: 'seed', folder, name: 'model', piece_length: 65_536 })
    cleanups.push(() => seed.stop())
    const webseed = encodeURIComponent(`${hub.endpoint}/Org/Model-GGUF/resolve/${commit}`)
    catalog.list([
      {
        repo: 'Org/Model-GGUF',
        seeds: 1,
        magnet: `magnet:?xt=urn:btih:${seed.infohash}&dn=model-q8_0.gguf&ws=${webseed}`
      }
    ])

    const config = join(scratch, 'config.toml')
    await writeFile(
      config,
      `[hub]\nendpoint = "${hub.endpoint}"\n[catalog]\nendpoint = "${catalog.endpoint}"\n[swarm]\ndht = false\npeer_addr = "127.0.0.1:0"\n`
    )
    const socket = join(scratch, 's.sock')
    const svc = (...args: string[]) => run(node!, [join(prefix, 'bin/svc'), '--socket', socket, ...args])
    const daemon = spawn(
      node!,
      [join(prefix, 'bin/svcd'), '--root', join(scratch, 'store'), '--config', config, '--socket', socket],
      { stdio: ['ignore', 'ignore', 'pipe'] }
    )
    cleanups.push(async () => {
      if (daemon.exitCode === null && daemon.kill()) await once(daemon, 'exit')
    })
    await new Promise<void>((resolve, reject) => {
      createInterface({ input: daemon.stderr }).on('line', (line) => {
        if ((JSON.parse(line) as { msg: string }).msg === 'listening') resolve()
      })
      daemon.once('exit', (code) => reject(new Error(`svcd ended with ${code}`)))
    })

    await svc('import', 'catalog', 'Org/Model-GGUF', '--peer', seed.address)
    await seed.until((state) => state.uploaded >= content.length)
    const { stdout } = await svc('path', 'org/model-gguf:q8_0')
    const chunks: Buffer[] = []
    for await (const chunk of createReadStream(stdout.trim())) chunks.push(chunk as Buffer)
    expect(Buffer.concat(chunks).equals(content)).toBe(true)
  })
})
