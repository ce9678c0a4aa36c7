// What is released, put together from the built packages and used as a stranger would. In place of the Node of the archive there
// is a script that starts the one of this test: how the real one is fetched, packed and run is the matter of dist.faults.ts.
import { execFile, execFileSync, spawnSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  writeFileSync
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { Spec, Validation } from '@cyclonedx/cyclonedx-library'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { makeModelFolder } from '../packages/testkit/src/models.ts'
import { collectModules } from '../scripts/dist/modules.ts'
import { ar, gzip, tar } from '../scripts/dist/pack.ts'
import { DEBIAN, product, versionOf } from '../scripts/dist/product.ts'
import { release } from '../scripts/dist/release.ts'
import { PLATFORMS, type Runtime } from '../scripts/dist/runtimes.ts'
import { FileTree } from '../scripts/dist/tree.ts'
import { type Installed, useInstalled } from './installed.ts'

const run = promisify(execFile)
const root = resolve(import.meta.dirname, '..')
const version = versionOf(root)
const scratch = mkdtempSync(join(tmpdir(), 'svc-dist-'))
afterAll(() => rmSync(scratch, { recursive: true, force: true }))

const runtime: Runtime = {
  version: process.versions.node,
  node: Buffer.from(`#!/bin/sh\nexec '${process.execPath}' "$@"\n`),
  licence: Buffer.from('the licence of Node\n')
}
const out = join(scratch, 'out')
const installer = join(out, 'install.sh')

const make = (folder: string): void =>
  release({ root, out: folder, platforms: ['linux-x64', 'darwin-arm64'], runtimeOf: () => runtime })
beforeAll(() => make(out))

const has = (program: string, ...args: string[]): boolean => spawnSync(program, args).error === undefined
const here = process.platform === 'linux' && process.arch === 'x64'

describe('the files of a release', () => {
  // dist.faults.ts makes them twice: they are the same bytes each time.
  it('are all there', () => {
    expect(readdirSync(out).sort()).toEqual([
      'Dockerfile',
      'SHA256SUMS',
      'install.sh',
      'provenance.intoto.json',
      `svc-${version}-darwin-arm64.tar.gz`,
      `svc-${version}-linux-x64.tar.gz`,
      `svc-${version}.cdx.json`,
      `svc_${version}_amd64.deb`
    ])
  })

  it('have the digests in SHA256SUMS', async () => {
    const { stdout } = await run('sha256sum', ['--check', '--strict', 'SHA256SUMS'], { cwd: out })
    expect(stdout.trim().split('\n')).toHaveLength(7)
  })

  it('have a CycloneDX bill of materials with everything installed and bundled', async () => {
    const bom = readFileSync(join(out, `svc-${version}.cdx.json`), 'utf8')
    expect(await new Validation.JsonStrictValidator(Spec.Version.v1dot6).validate(bom)).toBeNull()
    const names = (JSON.parse(bom) as { components: { name: string }[] }).components.map(({ name }) => name)
    expect(names).toEqual(expect.arrayContaining(['@svc/daemon', 'commander', 'webtorrent', 'pino', 'node']))
  })

  it('have a statement that names the commit and each file with its digest', () => {
    const { subject, predicate } = JSON.parse(readFileSync(join(out, 'provenance.intoto.json'), 'utf8'))
    const sums = readFileSync(join(out, 'SHA256SUMS'), 'utf8')
    for (const { name, digest } of subject) expect(sums).toContain(`${digest.sha256}  ${name}\n`)
    expect(subject).toHaveLength(6)
    const sha = execFileSync('git', ['rev-parse', 'HEAD'], { cwd: root, encoding: 'utf8' }).trim()
    expect(predicate.buildDefinition.resolvedDependencies).toEqual([
      { uri: expect.stringMatching(/^git\+https:/), digest: { gitCommit: sha } }
    ])
  })

  it('do not reveal who built them, when or where', async () => {
    const { stdout } = await run('tar', ['-tvzf', join(out, `svc-${version}-linux-x64.tar.gz`), '--full-time', '--utc'])
    const lines = stdout.trim().split('\n')
    expect(lines.length).toBeGreaterThan(500)
    expect(
      lines.filter((line) => !/^\S+ root\/root +\d+ 2000-01-01 00:00:00 svc-[^/]+-linux-x64\//.test(line))
    ).toEqual([])
    const paths = lines.map((line) => line.split(/ +/).slice(5).join(' '))
    expect(paths).toEqual(
      expect.arrayContaining([
        `svc-${version}-linux-x64/bin/svcd`,
        `svc-${version}-linux-x64/share/man/man1/svc.1`,
        `svc-${version}-linux-x64/share/doc/svc/LICENSE-NODE`,
        `svc-${version}-linux-x64/lib/svc/node_modules/@svc/library/dist/worker.js`,
        `svc-${version}-linux-x64/lib/svc/node_modules/@svc/swarm-v1/dist/THIRD-PARTY-LICENSES`
      ])
    )
    const { content } = product(root, runtime, DEBIAN).get('lib/svc/node_modules/@svc/daemon/package.json') as {
      content: Buffer
    }
    expect(content.toString()).not.toContain('workspace:')
    for (const path of paths) expect(path).not.toMatch(/\.map$|\.d\.ts$|\/src\/.*\.ts$|\.node$/)
  })

  it('include the licence of every package at run time', () => {
    const tree = collectModules(root, ['@svc/cli', '@svc/daemon'])
    const folders = tree
      .entries()
      .map(({ path }) => /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\/package\.json$/.exec(path)?.[1])
      .filter((path) => path !== undefined)
    expect(folders.length).toBeGreaterThan(30)
    const bare = folders.filter(
      (folder) =>
        !tree
          .entries()
          .some(({ path }) => path.startsWith(`${folder}/`) && /licen[cs]e/i.test(path.slice(folder.length)))
    )
    // these packages state their licence in their manifest alone.
    for (const folder of bare) {
      const { content } = tree.get(`${folder}/package.json`) as { content: Buffer }
      expect([folder, JSON.parse(content.toString()).license]).toEqual([
        folder,
        expect.stringMatching(/^(MIT|ISC|Apache-2\.0|BSD-\d-Clause)$/)
      ])
    }
  })
})

describe.skipIf(!here)('install.sh', () => {
  let installed: Installed
  const home = join(scratch, 'home')
  const env = { HOME: home, PATH: '/usr/bin:/bin', TMPDIR: scratch }
  const install = (...args: string[]) => spawnSync('sh', [installer, ...args], { env, encoding: 'utf8' })

  beforeAll(() => {
    mkdirSync(home)
    expect(install()).toMatchObject({ status: 0, stderr: '' })
    installed = useInstalled(join(home, '.local/bin'), home)
  })

  it('puts programs, man pages and completions in place, and can be run again', () => {
    const links = ['bin/svc', 'share/man/man8/svcd.8', 'share/zsh/site-functions/_svc']
    for (const link of links) expect(statSync(join(home, '.local', link)).isFile()).toBe(true)
    const before = lstatSync(join(home, `.local/lib/svc/svc-${version}-linux-x64`)).ino
    const again = install()
    expect(again).toMatchObject({ status: 0, stderr: '' })
    expect(again.stdout).toContain('is there already')
    expect(lstatSync(join(home, `.local/lib/svc/svc-${version}-linux-x64`)).ino).toBe(before)
    expect(readdirSync(join(home, '.local/lib/svc')).sort()).toEqual(['current', `svc-${version}-linux-x64`])
  })

  it('the installed programs import, list and serve a model', async () => {
    makeModelFolder(join(home, 'tiny'), { ggufs: { q8_0: 'Q8_0' } })
    await installed.withDaemon(async (svc) => {
      expect(await svc('import', 'local', join(home, 'tiny'), '--as', 'acme/tiny')).toBe(
        'acme/tiny:bf16\nacme/tiny:q8_0\n'
      )
      const path = (await svc('path', 'acme/tiny:q8_0')).trim()
      expect(readFileSync(path).equals(readFileSync(join(home, 'tiny/tiny-q8_0.gguf')))).toBe(true)
      expect(await svc('--version')).toMatch(/^svc (\S+)\nsvcd \1\n$/)
      // the service starts the name in PATH, which stays over updates.
      const shown = await svc('service', 'install', '--dry-run', '--manager', 'systemd')
      expect(shown).toContain(`ExecStart=${join(home, '.local/bin/svcd')}\n`)
    })
  })

  it('unpacks nothing whose digest differs', () => {
    const bad = join(scratch, 'bad')
    cpSync(out, bad, { recursive: true })
    const archive = join(bad, `svc-${version}-linux-x64.tar.gz`)
    const bytes = readFileSync(archive)
    bytes[bytes.length - 20]! ^= 1
    writeFileSync(archive, bytes)
    const other = join(scratch, 'other')
    const ran = install('--from', bad, '--prefix', other)
    expect(ran.status).toBe(1)
    expect(ran.stderr).toContain('nothing was unpacked')
    expect(readdirSync(join(other, 'lib/svc'))).toEqual([])
    expect(existsSync(join(other, 'bin'))).toBe(false)
    // a digest from elsewhere has the last word.
    expect(install('--prefix', other, '--sha256', '0'.repeat(64)).status).toBe(1)
    expect(install('--from', join(scratch, 'none'), '--prefix', other).status).toBe(1)
    expect(install('--from').status).toBe(2)
  })

  it("leaves other programs' files alone", () => {
    const prefix = join(scratch, 'taken')
    mkdirSync(join(prefix, 'bin'), { recursive: true })
    writeFileSync(join(prefix, 'bin/svc'), 'mine')
    const ran = install('--prefix', prefix)
    expect(ran.status).toBe(1)
    expect(readFileSync(join(prefix, 'bin/svc'), 'utf8')).toBe('mine')
    expect(install('--uninstall', '--prefix', prefix).status).toBe(0)
    expect(readFileSync(join(prefix, 'bin/svc'), 'utf8')).toBe('mine')
  })

  it('keeps the previous version for a daemon that still runs from it, and removes older ones', () => {
    const prefix = join(scratch, 'updates')
    expect(install('--prefix', prefix).status).toBe(0)
    for (const newer of ['999.0.1', '999.0.2']) {
      const next = join(scratch, `next-${newer}`)
      mkdirSync(next)
      const name = `svc-${newer}-linux-x64`
      const unpacked = join(next, 'unpacked')
      mkdirSync(unpacked)
      execFileSync('tar', ['-xzf', join(out, `svc-${version}-linux-x64.tar.gz`), '-C', unpacked])
      execFileSync('mv', [join(unpacked, `svc-${version}-linux-x64`), join(unpacked, name)])
      execFileSync('tar', ['-czf', join(next, `${name}.tar.gz`), '-C', unpacked, name])
      writeFileSync(join(next, 'SHA256SUMS'), execFileSync('sha256sum', [`${name}.tar.gz`], { cwd: next }))
      expect(install('--from', next, '--prefix', prefix)).toMatchObject({ status: 0, stderr: '' })
      expect(readlinkSync(join(prefix, 'lib/svc/current'))).toBe(name)
    }
    expect(readdirSync(join(prefix, 'lib/svc')).sort()).toEqual([
      'current',
      'svc-999.0.1-linux-x64',
      'svc-999.0.2-linux-x64'
    ])
  })

  it('--uninstall removes what it installed, and no more', () => {
    writeFileSync(join(home, '.local/bin/other'), '')
    expect(install('--uninstall')).toMatchObject({ status: 0, stderr: '' })
    expect(readdirSync(join(home, '.local/bin'))).toEqual(['other'])
    expect(existsSync(join(home, '.local/lib/svc'))).toBe(false)
    // the store stays.
    expect(existsSync(join(home, '.local/share/svc/blobs'))).toBe(true)
    expect(install('--uninstall').status).toBe(0)
  })

  it.skipIf(!has('dash', '-c', ''))('a plain POSIX shell parses it', async () => {
    for (const shell of ['dash', 'bash']) expect((await run(shell, ['-n', installer])).stderr).toBe('')
  })
})

describe.skipIf(!has('dpkg-deb', '--version'))('the Debian package', () => {
  const deb = join(out, `svc_${version}_amd64.deb`)

  it('is valid to dpkg, complete and owned by root', async () => {
    const { stdout: fields } = await run('dpkg-deb', ['--field', deb, 'Package', 'Version', 'Architecture'])
    expect(fields).toBe(`Package: svc\nVersion: ${version}\nArchitecture: amd64\n`)
    const target = join(scratch, 'deb')
    await run('dpkg-deb', ['--raw-extract', deb, target])
    expect((await run('md5sum', ['--check', '--quiet', 'DEBIAN/md5sums'], { cwd: target })).stdout).toBe('')
    for (const path of [
      'usr/bin/svc',
      'usr/lib/systemd/user/svcd.socket',
      'usr/lib/systemd/user/svc-outdated.timer',
      'usr/share/bash-completion/completions/svc',
      'usr/share/zsh/vendor-completions/_svc',
      'usr/share/man/man8/svcd.8.gz',
      'usr/share/doc/svc/copyright'
    ])
      expect([path, statSync(join(target, path)).isFile()]).toEqual([path, true])
    expect(readFileSync(join(target, 'usr/lib/systemd/user/svcd.service'), 'utf8')).toContain(
      '\nExecStart=/usr/bin/svcd\n'
    )
    expect(readFileSync(join(target, 'usr/lib/systemd/user/svc-outdated.service'), 'utf8')).toContain(
      '\nExecStart=/usr/bin/svc outdated\n'
    )
    expect((await run(join(target, 'usr/bin/svcd'), ['--version'])).stdout).toBe(`svcd ${version}\n`)
  })
})

describe('man pages', () => {
  const man = has('man', '--version')
  it.skipIf(!man).each(['svc.1', 'svcd.8'])('%s: man finds no fault', async (name) => {
    const page = join(scratch, name)
    const entry = product(root, runtime, { ...DEBIAN, compressed: false }).get(`share/man/man${name.at(-1)}/${name}`)
    writeFileSync(page, (entry as { content: Buffer }).content)
    const { stdout, stderr } = await run('man', ['-l', '--warnings', page], {
      env: { ...process.env, MANWIDTH: '80', MAN_KEEP_FORMATTING: '', LC_ALL: 'C.UTF-8' }
    })
    expect(stderr).toBe('')
    const shown = stdout.replace(/.\x08/g, '').replace(/\s+/g, ' ')
    const expected =
      name === 'svc.1'
        ? ['import local <path...>', '--dry-run', 'service install', '130 interrupted by Ctrl-C']
        : ['--log-format FORMAT', '[swarm]', 'seed_restricted (boolean)', 'SVC_HF_TOKEN']
    for (const words of expected) expect(shown).toContain(words)
  })
})

describe('the container file', () => {
  const file = readFileSync(join(root, 'scripts/dist/Dockerfile'), 'utf8')
  const lines = file
    .replace(/\\\n\s*/g, ' ')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => [line.split(' ', 1)[0]!, line.slice(line.indexOf(' ') + 1)] as const)
  const stages = lines.filter(([word]) => word === 'FROM')
  const last = lines.slice(lines.findLastIndex(([word]) => word === 'FROM'))
  const value = (word: string): string[] => last.filter(([each]) => each === word).map(([, text]) => text)

  it('has two stages; the last one runs no commands, as a user other than root', () => {
    const known = [
      'ARG',
      'FROM',
      'WORKDIR',
      'COPY',
      'RUN',
      'ENV',
      'VOLUME',
      'USER',
      'STOPSIGNAL',
      'HEALTHCHECK',
      'ENTRYPOINT'
    ]
    expect(lines.map(([word]) => word).filter((word) => !known.includes(word))).toEqual([])
    const given = lines.filter(([word]) => word === 'ARG').map(([, text]) => text.split('=') as [string, string])
    expect(given).toEqual([
      ['BUILD_BASE', 'docker.io/library/node:24-bookworm-slim'],
      ['BASE', 'docker.io/library/debian:bookworm-slim']
    ])
    const named = (name: string) => ['$', `{${name}}`].join('')
    expect(stages.map(([, text]) => text)).toEqual([`${named('BUILD_BASE')} AS build`, named('BASE')])
    expect(value('RUN')).toEqual([])
    expect(value('USER')).toEqual(['10001:10001'])
    expect(value('COPY')).toEqual(['--from=build /image/ /'])
  })

  it('starts programs that are in the image, in folders that its user owns', () => {
    const tree = product(root, runtime, DEBIAN).below('usr')
    const words = [...value('ENTRYPOINT'), ...value('HEALTHCHECK').map((text) => text.slice(text.indexOf('[')))]
    expect(words).toHaveLength(2)
    for (const text of words) {
      const [program] = JSON.parse(text) as string[]
      expect([program, tree.get(program!.slice(1))]).toEqual([program, expect.objectContaining({ executable: true })])
    }
    const made = lines.filter(([word]) => word === 'RUN').at(-1)![1]
    const env = Object.fromEntries(
      value('ENV').flatMap((text) => text.split(' ').map((pair) => pair.split('=') as [string, string]))
    )
    for (const folder of [env.SVC_ROOT, dirname(env.SVC_SOCKET!)]) {
      expect(made).toContain(`-o 10001 -g 10001 -m 0700 /image${folder}`)
      expect(JSON.parse(value('VOLUME')[0]!)).toContain(folder)
    }
  })

  it('copies what its steps need', () => {
    const steps = lines.filter(([word]) => word === 'RUN').map(([, text]) => text)
    expect(steps[2]).toContain(' scripts/dist/main.ts --platform this --tree /image/usr')
    const ignored = readFileSync(join(root, 'scripts/dist/Dockerfile.dockerignore'), 'utf8').split('\n')
    expect(ignored).toEqual(expect.arrayContaining(['**/dist', '!scripts/dist', '.git']))
  })
})

describe('the parts', () => {
  it('GNU tar reads long paths, links and modes unchanged', async () => {
    const tree = new FileTree()
    const long = `${'folder/'.repeat(20)}file`
    tree.add(long, 'deep')
    tree.add('program', '#!/bin/sh\n', true)
    tree.link('link', 'program')
    const folder = join(scratch, 'parts')
    mkdirSync(folder)
    writeFileSync(join(folder, 'a.tar.gz'), gzip(tar(tree)))
    await run('tar', ['-xzf', 'a.tar.gz'], { cwd: folder })
    expect(readFileSync(join(folder, long), 'utf8')).toBe('deep')
    expect(statSync(join(folder, 'program')).mode & 0o777).toBe(0o755)
    expect(readlinkSync(join(folder, 'link'))).toBe('program')
    const other = new FileTree()
    other.add('x'.repeat(200), '')
    expect(() => tar(other)).toThrow()
    for (const path of ['/a', 'a/../b', 'program']) expect(() => tree.add(path, '')).toThrow()
  })

  it.skipIf(!has('ar', '--version'))('ar reads files of odd length', async () => {
    const file = join(scratch, 'a.ar')
    writeFileSync(
      file,
      ar([
        ['one', Buffer.from('1')],
        ['two', Buffer.from('22')]
      ])
    )
    expect((await run('ar', ['p', file])).stdout).toBe('122')
    expect((await run('ar', ['t', file])).stdout).toBe('one\ntwo\n')
  })

  it('each platform has its own pinned Node', async () => {
    const { RUNTIMES } = await import('../scripts/dist/runtimes.ts')
    const digests = PLATFORMS.map((platform) => RUNTIMES[platform].integrity)
    expect(new Set(digests).size).toBe(PLATFORMS.length)
    for (const digest of digests) expect(digest).toMatch(/^sha512-[A-Za-z0-9+/]{86}==$/)
    const oldest = JSON.parse(readFileSync(join(root, 'packages/daemon/package.json'), 'utf8')).engines.node.slice(2)
    for (const platform of PLATFORMS)
      expect(RUNTIMES[platform].version.localeCompare(oldest, 'en', { numeric: true })).toBeGreaterThanOrEqual(0)
  })
})
