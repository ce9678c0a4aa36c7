import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { checkConfig } from '../../src/commands/check.ts'
import { ConfigError, StartError } from '../../src/errors.ts'
import { FLAG_HELP, HELP, parseFlags } from '../../src/flags.ts'
import { temporaryFolder } from '../support/daemon.ts'
import { runSvcd } from '../support/process.ts'

describe('svcd --check', () => {
  it('reports each value with its origin, but never the token', () => {
    const folder = temporaryFolder()
    mkdirSync(join(folder, '.config/svc'), { recursive: true })
    const file = join(folder, '.config/svc/config.toml')
    writeFileSync(file, '[store]\nroot = "/srv/models"\n[swarm]\nenabled = false\ntrackers = ["udp://t.example:1"]\n')
    const { code, out, err } = runSvcd(folder, ['--check'], { SVC_HF_TOKEN: 'hf_secret' })
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(out.split('\n')).toEqual([
      `configuration  ${file} (3 keys)`,
      'store          /srv/models ([store] root)',
      `socket         ${folder}/svc-${process.geteuid!()}/svc.sock (default)`,
      'hub            the public hub, with the token of SVC_HF_TOKEN',
      'swarm          off',
      '  [store] root = "/srv/models"',
      '  [swarm] enabled = false',
      '  [swarm] trackers = ["udp://t.example:1"]',
      'the configuration is fine',
      ''
    ])
  })

  it('flags override the environment, which overrides the file', async () => {
    const folder = temporaryFolder()
    const file = join(folder, 'c.toml')
    writeFileSync(file, '[store]\nroot = "/from-file"\n')
    const root = async (args: string[], env: Record<string, string>): Promise<string> =>
      (await checkConfig(parseFlags(['--check', '--config', file, ...args]), env))[1]!.replace(/ +/, ' ')
    expect(await root([], {})).toBe('store /from-file ([store] root)')
    expect(await root([], { SVC_ROOT: '/from-env' })).toBe('store /from-env (SVC_ROOT)')
    expect(await root(['--root', '/flag'], { SVC_ROOT: '/from-env' })).toBe('store /flag (--root)')
  })

  it('exits with 2 for anything that would prevent a start', async () => {
    const folder = temporaryFolder()
    const file = join(folder, 'c.toml')
    writeFileSync(file, '[swarm]\nenabel = true\n')
    const ran = runSvcd(folder, ['--check', '--config', file])
    expect([ran.code, ran.out]).toEqual([2, ''])
    for (const part of [file, 'enabel', 'upload_limit']) expect(ran.err).toContain(part)
    for (const [line, part] of [
      ['trusted = ["10.0.0.0/8", "10.1.2.3/8"]', '10.1.2.3/8'],
      ['trusted = ["rack-1"]', 'rack-1'],
      ['zone = "rack 1"', 'rack 1']
    ] as const) {
      writeFileSync(file, `[swarm]\n${line}\n`)
      await expect(checkConfig(parseFlags(['--check', '--config', file]), {})).rejects.toThrow(ConfigError)
      await expect(checkConfig(parseFlags(['--check', '--config', file]), {})).rejects.toThrow(part)
    }
    const refused = (text: string): Promise<unknown> => {
      writeFileSync(file, text)
      return checkConfig(parseFlags(['--check', '--config', file]), {})
    }
    await expect(refused('[swarm]\npeer_addr = "nowhere"\n')).rejects.toBeInstanceOf(ConfigError)
    await expect(refused('[swarm]\nwebseed_addr = "127.0.0.1"\n')).rejects.toBeInstanceOf(ConfigError)
    await expect(refused('[swarm')).rejects.toBeInstanceOf(ConfigError)
    await expect(checkConfig(parseFlags(['--check', '--config', `${file}.gone`]), {})).rejects.toBeInstanceOf(
      ConfigError
    )
    expect(() => parseFlags(['--check', 'tag', 'ls'])).toThrow(StartError)
  })
})

it('the help has every flag', () => {
  for (const flag of [
    'root',
    'config',
    'socket',
    'no-seed-verify',
    'log-level',
    'log-format',
    'check',
    'version',
    'help'
  ])
    expect(FLAG_HELP.filter(([text]) => new RegExp(`--${flag}\\b`).test(text))).toHaveLength(1)
  for (const [flag] of FLAG_HELP) expect(HELP).toContain(`  ${flag} `)
})
