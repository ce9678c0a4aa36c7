import { chownSync, mkdirSync, readFileSync, readlinkSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { withKey, writeKey } from '../../src/config/edit.ts'
import { parseConfigText } from '../../src/config/file.ts'
import { ConfigError } from '../../src/errors.ts'
import { temporaryFolder } from '../support/daemon.ts'

const ROOT = '/mnt/a "b" \\ c'

describe('a string', () => {
  it.each([
    ['', '[store]\nroot = X\n'],
    ['# c\n[swarm]\nseed = false', '# c\n[swarm]\nseed = false\n\n[store]\nroot = X\n'],
    ['[store]\n[swarm]\nseed = false\n', '[store]\nroot = X\n[swarm]\nseed = false\n'],
    ['[ store ] # here\n  root = "~/x"\n', '[ store ] # here\nroot = X\n'],
    ['[store]\nroot = "~/#1" # the "big" disk\n', '[store]\nroot = X # the "big" disk\n'],
    ["[store]\nroot = '~/#1'# mine\n", '[store]\nroot = X# mine\n'],
    ['[store]\r\nroot = "~/#1" # mine\r\n', '[store]\r\nroot = X # mine\r\n'],
    ['[store] # here\r\nroot = "/old"', '[store] # here\r\nroot = X'],
    ['# mine\r\n[store]', '# mine\r\n[store]\nroot = X'],
    ['# theirs\n[store]\r\nroot = "/old"\n', '# theirs\n[store]\r\nroot = X\n'],
    ['store.root = "/old" # old\r\n', 'store.root = X # old\r\n'],
    ['[swarm]\r\nseed = false\r\n', '[swarm]\r\nseed = false\r\n\r\n[store]\r\nroot = X\r\n'],
    ['[store]\r\nexpect = "i"\r\n', '[store]\r\nroot = X\r\nexpect = "i"\r\n'],
    ['store.root = "/old" # old\n[swarm]\ndht = false\n', 'store.root = X # old\n[swarm]\ndht = false\n'],
    ['[hub]\nendpoint = "[store]"\n[store]\nroot = "/old"\n', '[hub]\nendpoint = "[store]"\n[store]\nroot = X\n']
  ])('is changed in %j', (text, expected) => {
    const edited = withKey(text, { store: { root: ROOT } }, 'c.toml')
    expect(edited).toBe(expected.replace('X', () => JSON.stringify(ROOT)))
    expect(parseConfigText(edited, 'c.toml').store).toMatchObject({ root: ROOT })
  })

  it.each(['store = { root = "/old" }\n', '[store]\nroot = """\n/old"""\n'])('does not change %j', (text) => {
    expect(() => withKey(text, { store: { root: ROOT } }, 'c.toml')).toThrow(ConfigError)
  })

  it('is added beside other keys, which keep their comments', () => {
    const text = '# mine\n[store] # the big disk\nroot = "/mnt/models" # mounted by hand\n'
    expect(withKey(text, { store: { expect: 'an-id' } }, 'c.toml')).toBe(
      '# mine\n[store] # the big disk\nexpect = "an-id"\nroot = "/mnt/models" # mounted by hand\n'
    )
  })
})

describe('a boolean', () => {
  it.each([
    ['', '[swarm]\nseed_local = false\n'],
    ['# mine', '# mine\n\n[swarm]\nseed_local = false\n'],
    ['[hub]\nendpoint = "x"\n', '[hub]\nendpoint = "x"\n\n[swarm]\nseed_local = false\n'],
    ['  [ swarm ] # here\ndht = true\n', '  [ swarm ] # here\nseed_local = false\ndht = true\n'],
    ['[swarm]\nseed_local = true # or not\n', '[swarm]\nseed_local = false # or not\n'],
    ['[swarm]', '[swarm]\nseed_local = false']
  ])('is changed in %j', (text, expected) => {
    expect(withKey(text, { swarm: { seed_local: false } }, 'f')).toBe(expected)
  })

  it('is not confused with a key whose name begins the same', () => {
    const text = '[swarm]\nseed_local = true # both\nseed = true\n'
    expect(withKey(text, { swarm: { seed: false } }, 'f')).toBe('[swarm]\nseed_local = true # both\nseed = false\n')
  })

  it.each(['swarm.dht = false\n', 'swarm = { dht = false }\n', '[swarm\n', '[swarm]\nunknown = 1\n'])(
    'is not written into %j',
    (text) => {
      expect(() => withKey(text, { swarm: { seed_local: false } }, 'f')).toThrow(ConfigError)
    }
  )
})

it('creates the file for its owner only, keeps an existing mode, and follows a link', async () => {
  const folder = temporaryFolder()
  const absent = join(folder, 'a', 'config.toml')
  await writeKey(absent, { swarm: { seed_local: true } })
  expect(readFileSync(absent, 'utf8')).toBe('[swarm]\nseed_local = true\n')
  expect(statSync(absent).mode & 0o777).toBe(0o600)
  const real = join(folder, 'dotfiles.toml')
  writeFileSync(real, '[swarm]\n', { mode: 0o644 })
  const linked = join(folder, 'linked.toml')
  symlinkSync(real, linked)
  await writeKey(linked, { swarm: { seed_local: false } })
  expect(readFileSync(real, 'utf8')).toBe('[swarm]\nseed_local = false\n')
  expect(readlinkSync(linked)).toBe(real)
  expect(statSync(real).mode & 0o777).toBe(0o644)
  mkdirSync(join(folder, 'taken'))
  await expect(writeKey(join(folder, 'taken'), { swarm: { seed: false } })).rejects.toThrow(ConfigError)
})

it('serializes concurrent changes', async () => {
  const file = join(temporaryFolder(), 'config.toml')
  writeFileSync(file, '[hub]\nendpoint = "http://127.0.0.1:9"\n')
  await Promise.all([
    writeKey(file, { swarm: { seed: false } }),
    writeKey(file, { swarm: { seed_local: false } }),
    writeKey(file, { store: { root: '/mnt/models' } })
  ])
  expect(parseConfigText(readFileSync(file, 'utf8'), file)).toEqual({
    hub: { endpoint: 'http://127.0.0.1:9' },
    swarm: { seed: false, seed_local: false },
    store: { root: '/mnt/models' }
  })
})

it('does not change a file that it cannot parse', async () => {
  const file = join(temporaryFolder(), 'config.toml')
  const latin1 = Buffer.from('[swarm] # f\xfcr alle\nseed = true\n', 'latin1')
  writeFileSync(file, latin1)
  await expect(writeKey(file, { swarm: { seed: false } })).rejects.toThrow(ConfigError)
  expect(readFileSync(file)).toEqual(latin1)
})

it('keeps a byte order mark', async () => {
  const file = join(temporaryFolder(), 'config.toml')
  writeFileSync(file, '\ufeff[swarm]\nseed = true\n')
  await writeKey(file, { swarm: { seed: false } })
  expect(readFileSync(file, 'utf8')).toBe('\ufeff[swarm]\nseed = false\n')
})

it('follows a link whose file is not there yet', async () => {
  const folder = temporaryFolder()
  const real = join(folder, 'dotfiles', 'svc.toml')
  const linked = join(folder, 'config.toml')
  symlinkSync('dotfiles/svc.toml', linked)
  await writeKey(linked, { swarm: { seed: false } })
  expect(readlinkSync(linked)).toBe('dotfiles/svc.toml')
  expect(readFileSync(real, 'utf8')).toBe('[swarm]\nseed = false\n')
})

it.runIf(process.getuid?.() === 0)('keeps the owner of a file that an administrator changes', async () => {
  const file = join(temporaryFolder(), 'config.toml')
  writeFileSync(file, '[swarm]\n', { mode: 0o640 })
  chownSync(file, 4_711, 4_712)
  await writeKey(file, { swarm: { seed: false } })
  const { uid, gid, mode } = statSync(file)
  expect([uid, gid, mode & 0o777]).toEqual([4_711, 4_712, 0o640])
})
