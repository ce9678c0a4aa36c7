// install.sh with small archives that a test makes, some of them broken, and at places that are hard to quote. What it installs for
// real is the matter of dist.slow.ts.
import { execFile, execFileSync, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from 'node:fs'
import { createServer, type RequestListener, type Server } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { CERTIFICATE, KEY } from '../packages/hub/test/certificate.ts'

const script = fileURLToPath(new URL('../scripts/dist/install.sh', import.meta.url))
const scratch = mkdtempSync(join(tmpdir(), 'svc-install-'))
afterAll(() => rmSync(scratch, { recursive: true, force: true }))

const processor = process.arch === 'arm64' ? 'arm64' : 'x64'
const here =
  process.platform === 'linux' && ['x64', 'arm64'].includes(process.arch) && !existsSync('/etc/alpine-release')
const has = (program: string): boolean => spawnSync(program, ['-c', 'exit 0']).status === 0
const shells = ['dash', 'bash'].filter(has)
const LINKS = [
  'bin/svc',
  'bin/svcd',
  'share/man/man1/svc.1',
  'share/man/man8/svcd.8',
  'share/bash-completion/completions/svc',
  'share/zsh/site-functions/_svc',
  'share/fish/vendor_completions.d/svc.fish'
]

const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')
let made = 0
function folder(name = `f${(made += 1)}`): string {
  const path = join(scratch, name)
  mkdirSync(path, { recursive: true })
  return path
}

/** A release with one archive, and its digest as `SHA256SUMS` has it. */
function release(
  version = '1.0.0',
  change: (root: string) => void = () => undefined
): { from: string; archive: string } {
  const [tree, from] = [folder(), folder()]
  const name = `svc-${version}-linux-${processor}`
  for (const link of LINKS) {
    mkdirSync(dirname(join(tree, name, link)), { recursive: true })
    writeFileSync(join(tree, name, link), `#!/bin/sh\necho ${version}\n`, { mode: 0o755 })
  }
  change(join(tree, name))
  const archive = join(from, `${name}.tar.gz`)
  execFileSync('tar', ['-czf', archive, '-C', tree, name])
  sums(from, [`${sha256(readFileSync(archive))}  ${name}.tar.gz`])
  return { from, archive }
}
const sums = (from: string, lines: readonly string[]): void =>
  writeFileSync(join(from, 'SHA256SUMS'), lines.map((line) => `${line}\n`).join(''))

interface Run {
  readonly shell?: string
  readonly home?: string
  readonly cwd?: string
  readonly path?: string
}

function install(
  args: readonly string[],
  { shell = 'sh', home = folder(), cwd = scratch, path = '/usr/bin:/bin' }: Run = {}
) {
  const env = { HOME: home, PATH: path, LC_ALL: 'C' }
  return { home, ...spawnSync(shell, [script, ...args], { env, cwd, encoding: 'utf8', timeout: 60_000 }) }
}
const svcOf = (prefix: string): string => execFileSync(join(prefix, 'bin/svc'), { encoding: 'utf8' }).trim()
function left(home: string): string[] {
  const lib = join(home, '.local/lib/svc')
  return existsSync(lib) ? readdirSync(lib) : []
}

const AWKWARD = ['-n', 'spaces \'one\' "two" $(touch x) `touch x` $HOME * ü back\\slash\na newline']

describe.skipIf(!here)('install.sh', () => {
  test.each(shells)(
    "under %s it installs, reinstalls, upgrades and uninstalls, whatever the folder's name",
    (shell) => {
      const [first, second] = [release(), release('1.1.0')]
      for (const name of AWKWARD) {
        const prefix = join(folder(`${shell}/${name}`), 'p')
        const from = folder(`${shell}/from/${name}`)
        cpSync(first.from, from, { recursive: true })
        for (const [args, version] of [
          [['--from', from], '1.0.0'],
          [['--from', from], '1.0.0'],
          [['--from', second.from], '1.1.0']
        ] as const) {
          expect(install([...args, '--prefix', prefix], { shell }), name).toMatchObject({ status: 0, stderr: '' })
          expect(svcOf(prefix), name).toBe(version)
        }
        expect(install(['--uninstall', '--prefix', prefix], { shell }), name).toMatchObject({ status: 0, stderr: '' })
        expect(existsSync(join(prefix, 'lib/svc')), name).toBe(false)
        expect(LINKS.filter((link) => existsSync(join(prefix, link)))).toEqual([])
      }
      expect(existsSync(join(scratch, 'x'))).toBe(false)
    }
  )

  test('a prefix is the same one however it is written', () => {
    const { from } = release()
    const prefix = join(folder(), 'p')
    for (const spelling of [prefix, `${prefix}/`, `${prefix}//`, `${dirname(prefix)}/./p`, `${dirname(prefix)}/p/../p`])
      expect(install(['--from', from, '--prefix', spelling])).toMatchObject({ status: 0, stderr: '' })
    expect(install(['--from', from, '--prefix', 'p'], { cwd: dirname(prefix) })).toMatchObject({
      status: 0,
      stderr: ''
    })
    expect(install(['--uninstall', '--prefix', `${prefix}/`])).toMatchObject({ status: 0, stderr: '' })
    expect(LINKS.filter((link) => existsSync(join(prefix, link)))).toEqual([])
  })

  test("its advice about PATH can be pasted, whatever the folder's name", () => {
    const { from } = release()
    for (const [n, name] of AWKWARD.entries()) {
      const prefix = join(folder(`hint/${n}`), name)
      const { stdout } = install(['--from', from, '--prefix', prefix])
      const line = stdout.slice(stdout.indexOf('export PATH='), stdout.indexOf('\nhave the daemon'))
      const pasted = spawnSync('sh', ['-c', `${line}\nprintf %s "$PATH"`], {
        cwd: folder(),
        env: { PATH: '/usr/bin' },
        encoding: 'utf8'
      })
      expect(pasted.stdout).toBe(`${prefix}/bin:/usr/bin`)
    }
    const home = folder()
    expect(install(['--from', from], { home, path: `${home}/.local/bin:/usr/bin:/bin` }).stdout).not.toContain(
      'export PATH'
    )
  })

  test.each<[string, (at: { from: string; archive: string }) => void]>([
    ['half an archive', ({ archive }) => writeFileSync(archive, readFileSync(archive).subarray(0, 200))],
    ['another archive', ({ archive }) => writeFileSync(archive, readFileSync(release('9.9.9').archive))],
    ['no archive', ({ archive }) => rmSync(archive)],
    ['no list', ({ from }) => rmSync(join(from, 'SHA256SUMS'))],
    ['an empty list', ({ from }) => sums(from, [])],
    [
      'a list of two',
      ({ from }) =>
        sums(
          from,
          [1, 2].map((n) => `${'a'.repeat(64)}  svc-${n}-linux-${processor}.tar.gz`)
        )
    ],
    ['a list with a path', ({ from }) => sums(from, [`${'a'.repeat(64)}  ../svc-1-linux-${processor}.tar.gz`])],
    [
      'a list with carriage returns',
      ({ from }) => sums(from, [`${readFileSync(join(from, 'SHA256SUMS'), 'utf8').trim()}\r`])
    ],
    ['a list without digests', ({ from, archive }) => sums(from, [`  ${archive.split('/').at(-1)}`])]
  ])('%s: refused, and nothing is left', (_, spoil) => {
    const made = release()
    spoil(made)
    const { status, stderr, home } = install(['--from', made.from])
    expect(status).not.toBe(0)
    expect(stderr).not.toBe('')
    expect(existsSync(join(home, '.local/bin/svc'))).toBe(false)
    expect(left(home)).toEqual([])
  })

  test.each<[string, (root: string) => void]>([
    ['programs that do not run', (root) => writeFileSync(join(root, 'bin/svc'), '#!/bin/sh\nexit 1\n')],
    ['no program', (root) => rmSync(join(root, 'bin/svc'))],
    [
      'another folder',
      (root) => {
        cpSync(root, join(dirname(root), 'other'), { recursive: true })
        rmSync(root, { recursive: true })
        symlinkSync('other', root)
      }
    ]
  ])('a correct digest of an archive with %s: the previous version stays', (_, change) => {
    const good = release()
    const { home } = install(['--from', good.from])
    const bad = release('2.0.0', change)
    const { status } = install(['--from', bad.from], { home })
    expect(status).not.toBe(0)
    expect(svcOf(join(home, '.local'))).toBe('1.0.0')
    expect(left(home).sort()).toEqual(['current', `svc-1.0.0-linux-${processor}`])
  })

  test('a digest given by the user overrides the list', () => {
    const { from, archive } = release()
    const right = sha256(readFileSync(archive))
    expect(install(['--from', from, '--sha256', 'b'.repeat(64)])).toMatchObject({ status: 1 })
    expect(install(['--from', from, '--sha256', right])).toMatchObject({ status: 0 })
  })

  test('another program in the way: nothing is changed', () => {
    const home = folder()
    mkdirSync(join(home, '.local/bin'), { recursive: true })
    writeFileSync(join(home, '.local/bin/svcd'), 'theirs')
    expect(install(['--from', release().from], { home })).toMatchObject({ status: 1 })
    expect(readFileSync(join(home, '.local/bin/svcd'), 'utf8')).toBe('theirs')
    expect(existsSync(join(home, '.local/bin/svc'))).toBe(false)
    expect(existsSync(join(home, '.local/lib/svc/current'))).toBe(false)
  })

  test('--uninstall keeps files that it did not install, such as those of a package', () => {
    const prefix = folder()
    mkdirSync(join(prefix, 'lib/svc/node_modules'), { recursive: true })
    writeFileSync(join(prefix, 'lib/svc/node'), 'of a package')
    install(['--uninstall', '--prefix', prefix])
    expect(readFileSync(join(prefix, 'lib/svc/node'), 'utf8')).toBe('of a package')
    expect(install(['--from', release().from, '--prefix', prefix])).toMatchObject({ status: 0 })
    expect(install(['--uninstall', '--prefix', prefix])).toMatchObject({ status: 0 })
    expect(readdirSync(join(prefix, 'lib/svc')).sort()).toEqual(['node', 'node_modules'])
  })

  test('the next installation removes the leftovers of a killed one', () => {
    const { home } = install(['--from', release().from])
    mkdirSync(join(home, '.local/lib/svc/.install-abcdef/new'), { recursive: true })
    expect(install(['--uninstall'], { home })).toMatchObject({ status: 0, stderr: '' })
    expect(existsSync(join(home, '.local/lib/svc'))).toBe(false)
  })

  test('a place where no folder can be made: only an error', () => {
    const home = folder()
    writeFileSync(join(home, '.local'), 'a file')
    const { status, stderr } = install(['--from', release().from], { home })
    expect(status).not.toBe(0)
    expect(stderr).not.toBe('')
    expect(readFileSync(join(home, '.local'), 'utf8')).toBe('a file')
  })

  test('wrong words are refused before anything is done', () => {
    for (const args of [['--prefix'], ['--from', ''], ['--frob'], ['x'], ['--sha256']]) {
      const { status, home } = install(args)
      expect(status, args.join(' ')).toBe(2)
      expect(readdirSync(home)).toEqual([])
    }
    const { PATH } = process.env
    expect(spawnSync('sh', [script], { env: { PATH: PATH ?? '' }, encoding: 'utf8' }).status).not.toBe(0)
  })

  test.skipIf(spawnSync('curl', ['--version']).status !== 0)(
    'over HTTP: after an error, a page instead of the archive or a truncated answer, nothing is unpacked',
    async () => {
      const { from, archive } = release()
      const name = archive.split('/').at(-1)!
      const serve = async (answer: RequestListener): Promise<string> => {
        const server = createServer((request, response) => {
          if (request.url === '/SHA256SUMS') response.end(readFileSync(join(from, 'SHA256SUMS')))
          else answer(request, response)
        })
        return `http://localhost:${await listening(server)}`
      }
      const bytes = readFileSync(archive)
      const answers: RequestListener[] = [
        (_, response) => void response.writeHead(404).end(bytes),
        (_, response) => void response.end('<html>'),
        (_, response) => {
          response.writeHead(200, { 'content-length': bytes.length })
          response.write(bytes.subarray(0, 100), () => response.destroy())
        }
      ]
      for (const answer of answers) {
        const { home, status } = await installLater(['--from', await serve(answer)])
        expect(status).not.toBe(0)
        expect(left(home)).toEqual([])
      }
      const { status } = await installLater(['--from', await serve((_, response) => void response.end(bytes))])
      expect(status).toBe(0)
      expect(name).toMatch(/^svc-/)
    }
  )

  describe.each(['curl', 'wget'].filter((program) => spawnSync(program, ['--version']).status === 0))(
    'with %s',
    (program) => {
      /** A home in which the program believes the server, and a PATH with no other one. */
      function believing(): { readonly home: string; readonly path: string } {
        const home = folder()
        writeFileSync(join(home, 'ca.pem'), CERTIFICATE)
        writeFileSync(join(home, '.curlrc'), `cacert = "${home}/ca.pem"\n`)
        writeFileSync(join(home, '.wgetrc'), `ca_certificate = ${home}/ca.pem\n`)
        const bin = folder()
        for (const folder of ['/bin', '/usr/bin'])
          for (const name of readdirSync(folder))
            if (!['curl', 'wget'].includes(name) || name === program)
              if (!existsSync(join(bin, name))) symlinkSync(join(folder, name), join(bin, name))
        return { home, path: bin }
      }

      test('it follows redirects from https to https, and none to http', async () => {
        const { from } = release()
        const files: RequestListener = ({ url = '' }, response) => void response.end(readFileSync(join(from, url)))
        const plain = await listening(createServer(files))
        const secure = await listening(createTlsServer({ cert: CERTIFICATE, key: KEY }, files))
        const leadingTo = (place: string) =>
          listening(
            createTlsServer({ cert: CERTIFICATE, key: KEY }, ({ url = '' }, response) =>
              response.writeHead(302, { location: place + url }).end()
            )
          )
        const plainPlace = `http://localhost:${plain}`
        const to = async (place: string) =>
          installLater(['--from', `https://localhost:${await leadingTo(place)}`], believing())
        expect(await to(`https://localhost:${secure}`)).toMatchObject({ status: 0 })
        for (const place of [plainPlace, `HTTP://localhost:${plain}`, `${plainPlace}/https://localhost:${secure}`]) {
          const { home, status } = await to(place)
          expect(status, place).not.toBe(0)
          expect(left(home)).toEqual([])
        }
        // a place that the owner typed
        expect(await installLater(['--from', plainPlace], believing())).toMatchObject({ status: 0 })
      })
    }
  )
})

async function listening(server: Server): Promise<number> {
  await new Promise<void>((done) => server.listen(0, 'localhost', done))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

/** With servers of this process it must not wait for the program. */
async function installLater(
  args: readonly string[],
  { home = folder(), path = '/usr/bin:/bin' }: Run = {}
): Promise<{ home: string; status: number }> {
  const env = { HOME: home, PATH: path, LC_ALL: 'C' }
  const status = await new Promise<number>((resolve) =>
    execFile('sh', [script, ...args], { env, cwd: scratch }, (error) =>
      resolve(error === null ? 0 : Number(error.code))
    )
  )
  return { home, status }
}

test.skipIf(spawnSync('shellcheck', ['--version']).status !== 0)('shellcheck finds no fault in it', () => {
  expect(spawnSync('shellcheck', ['--shell=sh', script], { encoding: 'utf8' })).toMatchObject({ status: 0, stdout: '' })
})

test.skipIf(!here)('its links lead to the current version', () => {
  const { home } = install(['--from', release().from])
  expect(readlinkSync(join(home, '.local/bin/svc'))).toBe(join(home, '.local/lib/svc/current/bin/svc'))
})
