// The real units, which systemd itself checks if it is installed. Scripts stand in for systemctl and launchctl and record their
// arguments: the tests must not touch the services of this machine.
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { SVCD } from '@svc/testkit/programs'
import { describe, expect, it, onTestFinished } from 'vitest'
import { agentPlist, agentSocketPath, installedAgentSocket } from '../../../internal/services/src/agent.ts'
import { systemdUnits } from '../../../internal/services/src/units.ts'
import { run } from '../../src/run.ts'
import { Captured, type Ran, testDaemon } from '../support.ts'

const TEMPLATES = resolve(import.meta.dirname, '../../units')
const units = resolve(import.meta.dirname, '../../../../systemd/user')

interface Home {
  readonly folder: string
  readonly daemon: string
  svc(...args: string[]): Promise<Ran>
  /** The arguments of the manager since the last call. */
  asked(): string[]
  /** What the manager answers from now on, as lines of a shell's `case "$*" in`. */
  answer(cases: string): void
}

function home(manager: 'systemctl' | 'launchctl', socketPath?: string): Home {
  const folder = mkdtempSync(join(tmpdir(), 'svc-home-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const bin = join(folder, 'bin')
  mkdirSync(bin)
  const program = (name: string, text: string): void => {
    writeFileSync(join(bin, name), `#!/bin/sh\n${text}\n`)
    chmodSync(join(bin, name), 0o755)
  }
  const record = join(folder, 'asked')
  const answer = (cases: string): void =>
    program(manager, `echo "$*" >> '${record}'\ncase "$*" in\n${cases}\n*) exit 0 ;;\nesac`)
  answer('')
  program('svcd', 'exec true')
  return {
    folder,
    daemon: join(bin, 'svcd'),
    async svc(...args) {
      const stdout = new Captured('utf8')
      const stderr = new Captured('utf8')
      const env = { HOME: folder, PATH: `${bin}:/usr/bin:/bin`, SVC_SOCKET: socketPath ?? join(folder, 's.sock') }
      const code = await run(
        args,
        '1.2.3',
        { stdout: stdout.output, stderr: stderr.output, cwd: folder, env },
        new AbortController().signal
      )
      return { code, stdout: stdout.text, stderr: stderr.text }
    },
    asked() {
      const lines = existsSync(record) ? readFileSync(record, 'utf8').trimEnd().split('\n') : []
      rmSync(record, { force: true })
      return lines
    },
    answer
  }
}

describe('the units', () => {
  it('are those of systemd/user, which start what PATH has, with the program that was found', () => {
    for (const [name, text] of Object.entries(
      systemdUnits(['/usr/bin/env', 'svcd'], ['/usr/bin/env', 'svc'], TEMPLATES)
    ))
      expect(text).toBe(readFileSync(join(units, name), 'utf8'))
  })

  const analyze = spawnSync('systemd-analyze', ['--version']).status === 0
  it.skipIf(!analyze)('systemd reads paths with blanks, percents and dollars as they are', () => {
    const { folder } = home('systemctl')
    const program = join(folder, 'my 50% $HOME', 'svcd')
    mkdirSync(join(program, '..'))
    writeFileSync(program, '#!/bin/sh\n')
    chmodSync(program, 0o755)
    const texts = systemdUnits([program], [program], TEMPLATES)
    for (const [name, text] of Object.entries(texts)) writeFileSync(join(folder, name), text)
    const { stdout, stderr } = spawnSync(
      'systemd-analyze',
      ['verify', '--user', ...Object.keys(texts).map((name) => join(folder, name))],
      { encoding: 'utf8', env: { ...process.env, XDG_RUNTIME_DIR: folder } }
    )
    expect(stdout + stderr).toBe('')
    expect(() => systemdUnits(['/a "b"/svcd'], ['/usr/bin/svc'], TEMPLATES)).toThrow(
      expect.objectContaining({ code: 'E_USAGE' })
    )
  })
})

describe('systemd', () => {
  it('install writes the units and is idempotent; remove deletes them', async () => {
    const { folder, daemon, svc, asked, answer } = home('systemctl')
    const service = join(folder, '.config/systemd/user/svcd.service')
    const dry = await svc('service', 'install', '--dry-run', '--manager', 'systemd', '--svcd', daemon)
    expect(dry.code).toBe(0)
    expect(dry.stdout).toContain(`would write ${service}`)
    expect(dry.stdout).toContain(`ExecStart=${daemon}`)
    expect([asked(), existsSync(service)]).toEqual([[], false])

    answer('*is-active*) echo inactive; exit 3 ;;')
    const first = await svc('service', 'install', '--manager', 'systemd', '--svcd', daemon)
    expect(first).toMatchObject({ code: 0 })
    expect(first.stdout.split('\n')[0]).toBe(`wrote ${join(folder, '.config/systemd/user/svcd.socket')}`)
    expect(first.stderr).toContain('enable-linger')
    expect(first.stderr).toContain('svc seed off')
    expect(readFileSync(service, 'utf8')).toContain(`\nExecStart=${daemon}\n`)
    expect(statSync(service).mode & 0o777).toBe(0o644)
    // the timer is installed, but not enabled
    const timer = join(folder, '.config/systemd/user/svc-outdated.timer')
    expect(existsSync(timer)).toBe(true)
    expect(readFileSync(timer.replace(/timer$/, 'service'), 'utf8')).toMatch(/^ExecStart=.*bin\/svc\.cjs"? outdated$/m)
    expect(asked()).toEqual([
      '--user is-enabled svcd.socket',
      '--user is-active svcd.service',
      '--user show-environment',
      '--user daemon-reload',
      '--user enable svcd.socket svcd.service',
      '--user restart svcd.socket svcd.service'
    ])
    const second = await svc('service', 'install', '--manager', 'systemd', '--svcd', daemon)
    expect(second.stdout).toContain(`unchanged ${service}`)

    asked()
    expect(await svc('service', 'remove', '--manager', 'systemd')).toMatchObject({ code: 0 })
    expect(asked()).toEqual(
      expect.arrayContaining([
        '--user disable --now svc-outdated.timer svc-ui.service',
        '--user disable --now svcd.socket svcd.service'
      ])
    )
    expect([service, timer].filter((path) => existsSync(path))).toEqual([])
    const again = await svc('service', 'remove', '--manager', 'systemd', '--json')
    expect(JSON.parse(again.stdout).steps).toContain(`absent ${service}`)
  })

  it('install writes the expected store into the configuration, keeps the rest of it, and continues if it cannot', async () => {
    const { folder, daemon, svc, answer } = home('systemctl')
    answer('*is-active*) echo inactive; exit 3 ;;')
    writeFileSync(daemon, `#!/bin/sh\nexec '${[process.execPath, ...SVCD].join("' '")}' "$@"\n`)
    const config = join(folder, '.config/svc/config.toml')
    mkdirSync(join(folder, '.config/svc'), { recursive: true })
    writeFileSync(config, '[store]\nroot = "~/models" # the big disk\n')
    const install = () => svc('service', 'install', '--manager', 'systemd', '--svcd', daemon)
    expect(await install()).toMatchObject({ code: 0 })
    const id = readFileSync(join(folder, 'models/id'), 'utf8').trim()
    const expected = `[store]\nexpect = "${id}"\nroot = "~/models" # the big disk\n`
    expect(readFileSync(config, 'utf8')).toBe(expected)
    // the disk is not mounted: no store is made, and the service, which refuses to start, is installed all the same
    renameSync(join(folder, 'models'), join(folder, 'away'))
    expect((await install()).stdout).toContain('it said 2')
    expect([readFileSync(config, 'utf8'), existsSync(join(folder, 'models'))]).toEqual([expected, false])
  }, 60_000)

  it('status: 3 when it is not installed, 1 when it does not run, 0 when it does', async () => {
    const { daemon, svc, answer } = home('systemctl')
    const status = async (): Promise<number | null> => (await svc('service', 'status', '--manager', 'systemd')).code
    answer('*is-enabled*) exit 1 ;;\n*is-active*) echo inactive; exit 3 ;;')
    expect(await status()).toBe(3)
    await svc('service', 'install', '--manager', 'systemd', '--svcd', daemon)
    answer('*is-enabled*) echo enabled ;;\n*is-active*) echo failed; exit 3 ;;')
    expect(await status()).toBe(1)
    answer('*is-enabled*) echo enabled ;;\n*is-active*) echo active ;;')
    expect(await status()).toBe(0)
    const { stdout } = await svc('service', 'status', '--manager', 'systemd', '--json')
    expect(JSON.parse(stdout)).toMatchObject({ installed: true, enabled: true, active: true, version: null })
  })

  it('without systemd, install writes nothing and says what to do', async () => {
    const { folder, daemon, svc, answer } = home('systemctl')
    answer('*) echo "Failed to connect to bus" >&2; exit 1 ;;')
    const ran = await svc('service', 'install', '--manager', 'systemd', '--svcd', daemon)
    expect(ran.code).toBe(1)
    expect(ran.stderr).toContain('hint: ')
    expect(existsSync(join(folder, '.config'))).toBe(false)
  })

  it('install refuses while a daemon that was started by hand runs', async () => {
    const running = await testDaemon()
    const { folder, daemon, svc, answer } = home('systemctl', running.socketPath)
    answer('*is-active*) echo inactive; exit 3 ;;')
    const ran = await svc('service', 'install', '--manager', 'systemd', '--svcd', daemon)
    expect(ran.code).toBe(1)
    expect(ran.stderr).toContain('svc stop')
    expect(existsSync(join(folder, '.config'))).toBe(false)
  })

  it('finds the daemon beside svc when no command is given, and refuses what cannot be run', async () => {
    const { folder, svc } = home('systemctl')
    const { stdout } = await svc('service', 'install', '--dry-run', '--manager', 'systemd')
    const beside = resolve(import.meta.dirname, '../../../daemon/bin/svcd.cjs')
    expect(stdout).toContain(`ExecStart=${process.execPath} --max-semi-space-size=1 ${beside}`)
    expect((await svc('service', 'install', '--dry-run', '--svcd', join(folder, 'none'))).code).toBe(2)
  })
})

describe('launchd', () => {
  it('install writes an agent with its socket outside TMPDIR, and loads it', async () => {
    const { folder, daemon, svc, asked } = home('launchctl')
    const path = join(folder, 'Library/LaunchAgents/io.svc.svcd.plist')
    const uid = process.getuid!()
    expect(await svc('service', 'install', '--manager', 'launchd', '--svcd', daemon)).toMatchObject({ code: 0 })
    expect(readFileSync(path, 'utf8')).toContain(`<string>${agentSocketPath(folder)}</string>`)
    expect(asked().slice(-3)).toEqual([
      `bootout gui/${uid}/io.svc.svcd`,
      `bootstrap gui/${uid} ${path}`,
      `enable gui/${uid}/io.svc.svcd`
    ])
    // without a setting: svc looks there once the agent is installed, and only then.
    expect(installedAgentSocket({ HOME: folder }, 'darwin')).toBe(agentSocketPath(folder))
    expect(installedAgentSocket({ HOME: folder }, 'linux')).toBeUndefined()
    expect(installedAgentSocket({ HOME: folder, SVC_SOCKET: '/x' }, 'darwin')).toBeUndefined()
    expect(await svc('service', 'remove', '--manager', 'launchd')).toMatchObject({ code: 0 })
    expect(existsSync(path)).toBe(false)
    expect(installedAgentSocket({ HOME: folder }, 'darwin')).toBeUndefined()
  })

  const python = spawnSync('python3', ['-c', 'import plistlib']).status === 0
  it.skipIf(!python)('a property list parser reads back the same values', () => {
    const words = ['/Applications/a & b <c>/svcd']
    const script = 'import plistlib,json,sys;print(json.dumps(plistlib.loads(sys.stdin.buffer.read())))'
    const input = agentPlist(words, '/Users/me')
    const { stdout } = spawnSync('python3', ['-c', script], { input, encoding: 'utf8' })
    expect(JSON.parse(stdout)).toMatchObject({
      Label: 'io.svc.svcd',
      ProgramArguments: [...words, '--socket', agentSocketPath('/Users/me'), '--log-format', 'text'],
      RunAtLoad: true,
      KeepAlive: { SuccessfulExit: false },
      Umask: 0o077
    })
  })
})

it("--version shows the daemon's version, and warns when they differ", async () => {
  const daemon = await testDaemon()
  const { version } = JSON.parse(readFileSync(resolve(import.meta.dirname, '../../../daemon/package.json'), 'utf8'))
  const ran = await daemon.svc('--version')
  expect(ran).toMatchObject({ code: 0, stdout: `svc 1.2.3\nsvcd ${version}\n` })
  expect(ran.stderr).toContain('different versions')
  const json = await daemon.svc('--version', '--json')
  expect(JSON.parse(json.stdout)).toEqual({ svc: '1.2.3', svcd: version, same: false })
  await daemon.pause()
  expect((await daemon.svc('-V')).stdout).toBe('svc 1.2.3\n')
  await daemon.resume()
  const other = join(daemon.folder, 'none.sock')
  expect(JSON.parse((await daemon.svc('--socket', other, '--version', '--json')).stdout).svcd).toBe(null)
})
