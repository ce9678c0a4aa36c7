import { writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { configPath, loadConfig, mergeConfig } from '../../src/config/config.ts'
import { parseConfigText } from '../../src/config/file.ts'
import { CONFIG_KEYS } from '../../src/config/keys.ts'
import { ConfigError } from '../../src/errors.ts'
import { temporaryFolder } from '../support/daemon.ts'

const EXAMPLE: Record<string, unknown> = {
  string: '"text"',
  boolean: 'true',
  count: '12',
  bytes: '"50GB"',
  seconds: '2.5',
  strings: '["a"]'
}
const WRONG: Record<string, string[]> = {
  string: ['1', 'true', '["a"]', '1979-05-27'],
  boolean: ['"true"', '1'],
  count: ['-1', '1.5', '"1"', 'nan', 'inf'],
  bytes: ['-1', '1.5', '"50 apples"', '"GB"', '"-1GB"', '"9e9GB"', 'inf'],
  seconds: ['0', '-1', '"1"', 'inf'],
  strings: ['"a"', '[1]', '[["a"]]']
}
const rows = Object.entries(CONFIG_KEYS).flatMap(([section, keys]) =>
  Object.entries(keys).map(([key, { type }]) => ({ section, key, type }))
)

describe('the configuration file', () => {
  it.each(rows)('[$section] $key accepts only its type', ({ section, key, type }) => {
    expect(parseConfigText(`[${section}]\n${key} = ${EXAMPLE[type]}\n`, 'f')).toHaveProperty(`${section}.${key}`)
    for (const wrong of WRONG[type]!) {
      const error = refusal(`[${section}]\n${key} = ${wrong}\n`)
      for (const part of ['some/file.toml', section, key, ...Object.keys(CONFIG_KEYS[section as 'swarm'])])
        expect(error.message).toContain(part)
    }
  })

  it.each([
    ['1000', 1000],
    ['"1000"', 1000],
    ['"50GB"', 50e9],
    ['"1.5 TiB"', 1.5 * 2 ** 40],
    ['"64kib"', 65_536]
  ])('a size may be %s', (text, bytes) => {
    expect(parseConfigText(`[store]\nmax_bytes = ${text}\n`, 'f').store?.max_bytes).toBe(bytes)
  })

  it.each([
    ['not TOML', '[swarm'],
    ['an unknown section', '[swarms]\n'],
    ['an unknown key', '[swarm]\nenable = true\n'],
    ['a key outside a section', 'root = "/x"\n'],
    ['a section that is a value', 'swarm = 1\n'],
    ['a list of sections', '[[swarm]]\nseed = true\n'],
    ['__proto__', '[__proto__]\nx = 1\n'],
    ['constructor', '[swarm]\nconstructor = 1\n']
  ])('%s is refused', (_name, text) => {
    expect(refusal(text).message).toContain('some/file.toml')
  })
})

function refusal(text: string): ConfigError {
  try {
    parseConfigText(text, 'some/file.toml')
  } catch (error) {
    if (error instanceof ConfigError) return error
    throw error
  }
  throw new Error('the text was accepted')
}

describe('where things come from', () => {
  it('prefers flag, then environment, then file, then XDG, then home, for the root', () => {
    const file = { store: { root: '/file' } }
    const env = { SVC_ROOT: '/env', XDG_DATA_HOME: '/data' }
    expect(mergeConfig(file, { root: '/flag' }, env).store.root).toBe('/flag')
    expect(mergeConfig(file, {}, env).store.root).toBe('/env')
    expect(mergeConfig(file, {}, { ...env, SVC_ROOT: '' }).store.root).toBe('/file')
    expect(mergeConfig({ store: { root: '~/models' } }, {}, {}).store.root).toBe(join(homedir(), 'models'))
    for (const root of ['models', './models', '~other/models'])
      expect(() => mergeConfig({ store: { root } }, {}, {}), root).toThrow(ConfigError)
    expect(mergeConfig({}, {}, { XDG_DATA_HOME: '/data' }).store.root).toBe('/data/svc')
    expect(mergeConfig({}, {}, { XDG_DATA_HOME: 'relative' }).store.root).toMatch(/\/\.local\/share\/svc$/)
  })

  it('prefers the same for the file, which must exist when it is named', () => {
    expect(configPath({ config: '/a' }, { SVC_CONFIG: '/b' })).toEqual({ file: '/a', required: true })
    expect(configPath({}, { SVC_CONFIG: '/b' })).toEqual({ file: '/b', required: true })
    expect(configPath({}, { XDG_CONFIG_HOME: '/c' })).toEqual({ file: '/c/svc/config.toml', required: false })
  })

  it('has the documented defaults', async () => {
    const config = await loadConfig({}, { XDG_CONFIG_HOME: temporaryFolder(), XDG_DATA_HOME: '/data' })
    expect(config.swarm).toEqual({
      enabled: true,
      seed: true,
      uploadLimitBytesPerSecond: 0,
      noSeedVerify: false,
      dht: true,
      dhtBootstrap: undefined,
      webseedAddr: '127.0.0.1:0',
      peerAddr: '0.0.0.0:0',
      trackers: [],
      fillTimeoutMs: 600_000,
      seedRestricted: false,
      seedOnImport: false,
      trusted: [],
      lsd: false
    })
    expect(config.hub).toMatchObject({ endpoint: undefined, token: undefined, skipUnrecognized: true })
  })

  it('lets the catalog inherit the upload limit, and HF_ENDPOINT override the file', async () => {
    const folder = temporaryFolder()
    const file = join(folder, 'c.toml')
    writeFileSync(file, '[swarm]\nupload_limit = 7\n[hub]\nendpoint = "http://file"\n')
    const config = await loadConfig(
      { config: file, noSeedVerify: true },
      { HF_ENDPOINT: 'http://env', SVC_HF_TOKEN: ' secret\n' }
    )
    expect([
      config.catalog.uploadLimitBytesPerSecond,
      config.hub.endpoint,
      config.hub.token,
      config.swarm.noSeedVerify
    ]).toEqual([7, 'http://env', 'secret', true])
    expect(
      mergeConfig({ swarm: { upload_limit: 7 }, catalog: { upload_limit: 0 } }, {}, {}).catalog
        .uploadLimitBytesPerSecond
    ).toBe(0)
  })
})

describe('fetching on demand', () => {
  const onDemand = (mirror: object, env = {}) =>
    mergeConfig({ mirror: { on_demand: true, ...mirror } }, { root: '/x' }, env).mirror.onDemand

  it.each([
    ['0.0.0.0:1', 'hub_addr'],
    ['[::]:1', 'oci_addr'],
    ['10.0.0.1:1', 'hub_addr'],
    ['store.example:1', 'oci_addr']
  ])('at %s requires a token or explicit consent', (address, key) => {
    expect(() => onDemand({ [key]: address })).toThrow(ConfigError)
    expect(() => onDemand({ [key]: address })).toThrow(key)
    expect(() => onDemand({ [key]: address })).toThrow('on_demand_anonymous')
    expect(onDemand({ [key]: address, on_demand_anonymous: true })).toBeDefined()
    expect(onDemand({ [key]: address }, { SVC_MIRROR_TOKEN: 'secret' })).toBeDefined()
  })

  it.each(['127.0.0.1:1', '[::1]:1', 'localhost:1'])('for local programs requires nothing (%s)', (address) => {
    expect(onDemand({ hub_addr: address, oci_addr: address })?.revisions).toBe('named')
  })

  it('accepts two kinds of revisions', () => {
    expect(onDemand({ on_demand_revisions: 'any' })?.revisions).toBe('any')
    expect(() => onDemand({ on_demand_revisions: 'all' })).toThrow('on_demand_revisions')
  })
})

describe('the S3 mirror', () => {
  const s3Of = (mirror: object, env = {}) => mergeConfig({ mirror }, { root: '/x' }, env).mirror

  it.each(['0.0.0.0:1', '[::]:1', '10.0.0.1:1', 'store.example:1'])('needs keys at %s', (address) => {
    expect(() => s3Of({ s3_addr: address })).toThrow(ConfigError)
    expect(() => s3Of({ s3_addr: address })).toThrow('s3_keys')
    expect(s3Of({ s3_addr: address, s3_keys: '/k' }).s3Keys).toBe('/k')
  })

  it('needs none on this machine, unless the other mirrors ask for a token', () => {
    expect(s3Of({ s3_addr: '127.0.0.1:1' }).s3Keys).toBeUndefined()
    expect(() => s3Of({ s3_addr: '127.0.0.1:1' }, { SVC_MIRROR_TOKEN: 'secret' })).toThrow('s3_keys')
    expect(s3Of({ hub_addr: '0.0.0.0:1' }, { SVC_MIRROR_TOKEN: 'secret' }).s3Addr).toBeUndefined()
  })

  it('requires an absolute path', () => {
    expect(() => s3Of({ s3_addr: '127.0.0.1:1', s3_keys: 'keys' })).toThrow('s3_keys')
  })
})

describe('on_demand_allow', () => {
  const allowsOf = (patterns?: readonly string[]) =>
    mergeConfig({ mirror: { on_demand: true, ...(patterns && { on_demand_allow: patterns }) } } as never, {}, {}).mirror
      .onDemand!.allows

  it.each([
    [undefined, 'any/Name', true],
    [['*'], 'any/name', true],
    [['acme/*'], 'Acme/model-7b', true],
    [['acme/*'], 'acmes/model', false],
    [['acme/*'], 'evil/acme/x', false],
    [['ACME/M'], 'acme/m', true],
    [['acme/m.x'], 'acme/mxx', false],
    [[], 'acme/m', false]
  ])('%j and %s: %s', (patterns, name, allowed) => {
    expect(allowsOf(patterns)(name)).toBe(allowed)
  })

  it.each([[['a/b/c']], [['{a,b}/*']], [['ac*/x']], [Array.from({ length: 257 }, (_, index) => `a/m${index}`)]])(
    'refused: %.40j',
    (patterns) => {
      expect(() => allowsOf(patterns)).toThrow(ConfigError)
    }
  )
})

describe('[[trust]]', () => {
  const RULE = 'names = ["nvidia/*"]\nmode = "require"\nkeys = ["/etc/svc/nvidia.pub"]\n'
  const rules = (text: string) => mergeConfig(parseConfigText(text, 'f'), { root: '/x' }, {}).trust

  it('names models by globs, without regard to case', () => {
    const [rule] = rules(`[[trust]]\n${RULE}`)
    expect(rule).toMatchObject({ mode: 'require', keys: ['/etc/svc/nvidia.pub'], root: undefined })
    const names = ['nvidia/x', 'NVIDIA/X', 'nvidia2/x', 'a/nvidia', 'nvidia/x/y']
    expect(names.filter((name) => rule!.isFor([name]))).toEqual(['nvidia/x', 'NVIDIA/X'])
    expect([rule!.isFor(['me/copy', 'nvidia/x']), rule!.isFor([])]).toEqual([true, false])
    const [all] = rules(`[[trust]]\n${RULE.replace('nvidia/*', '*')}`)
    expect([all!.isFor(['any/name']), all!.isFor([])]).toEqual([true, true])
    expect(rules('')).toEqual([])
  })

  it.each([
    ['a table that is no list', `[trust]\n${RULE}`],
    ['an unknown key', `[[trust]]\n${RULE}key = "x"\n`],
    ['a wrong type', `[[trust]]\n${RULE.replace('["nvidia/*"]', '"nvidia/*"')}`],
    ['no names', `[[trust]]\nmode = "off"\n`],
    ['a name without a slash', `[[trust]]\n${RULE.replace('nvidia/*', 'nvidia')}`],
    ['no mode', `[[trust]]\n${RULE.replace('mode = "require"', '')}`],
    ['another mode', `[[trust]]\n${RULE.replace('require', 'strict')}`],
    ['nobody who signs', `[[trust]]\n${RULE.replace(/keys.*/, '')}`],
    ['a relative path', `[[trust]]\n${RULE.replace('/etc/svc/', '')}`],
    ['an identity without a trust root', `[[trust]]\n${RULE}identities = [{ issuer = "i", subject = "s" }]\n`],
    ['a trust root without an identity', `[[trust]]\n${RULE}root = "/r.json"\n`],
    ['an identity without a subject', `[[trust]]\n${RULE}root = "/r.json"\nidentities = [{ issuer = "i" }]\n`]
  ])('%s is refused', (_, text) => {
    expect(() => rules(text)).toThrow(ConfigError)
  })
})
