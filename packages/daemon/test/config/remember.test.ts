import { mkdirSync, readFileSync, readlinkSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { rememberSeedLocal, withSeedLocal } from '../../src/config/remember.ts'
import { ConfigError } from '../../src/errors.ts'
import { temporaryFolder } from '../support/daemon.ts'

it.each([
  ['', '[swarm]\nseed_local = false\n'],
  ['# mine', '# mine\n\n[swarm]\nseed_local = false\n'],
  ['[hub]\nendpoint = "x"\n', '[hub]\nendpoint = "x"\n\n[swarm]\nseed_local = false\n'],
  ['  [ swarm ] # here\ndht = true\n', '  [ swarm ] # here\nseed_local = false\ndht = true\n'],
  ['[swarm]\nseed_local = true # or not\n', '[swarm]\nseed_local = false\n'],
  ['[swarm]', '[swarm]\nseed_local = false']
])('%j is added to', (text, expected) => {
  expect(withSeedLocal(text, false, 'f')).toBe(expected)
})

it.each(['swarm.dht = false\n', 'swarm = { dht = false }\n', '[swarm\n', '[swarm]\nunknown = 1\n'])(
  '%j is left to its owner',
  (text) => {
    expect(() => withSeedLocal(text, false, 'f')).toThrow(ConfigError)
  }
)

it('makes the file for its owner alone, keeps the mode of one that is there, and follows a link', async () => {
  const folder = temporaryFolder()
  const absent = join(folder, 'a', 'config.toml')
  await rememberSeedLocal(absent, true)
  expect(readFileSync(absent, 'utf8')).toBe('[swarm]\nseed_local = true\n')
  expect(statSync(absent).mode & 0o777).toBe(0o600)
  const real = join(folder, 'dotfiles.toml')
  writeFileSync(real, '[swarm]\n', { mode: 0o644 })
  const linked = join(folder, 'linked.toml')
  symlinkSync(real, linked)
  await rememberSeedLocal(linked, false)
  expect(readFileSync(real, 'utf8')).toBe('[swarm]\nseed_local = false\n')
  expect(readlinkSync(linked)).toBe(real)
  expect(statSync(real).mode & 0o777).toBe(0o644)
  mkdirSync(join(folder, 'taken'))
  await expect(rememberSeedLocal(join(folder, 'taken'), false)).rejects.toThrow(ConfigError)
})
