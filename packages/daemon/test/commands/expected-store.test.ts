import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { expectCommand } from '../../src/commands/expect.ts'
import { mergeConfig } from '../../src/config/config.ts'
import { ConfigError, StartError } from '../../src/errors.ts'
import { parseFlags } from '../../src/flags.ts'
import { temporaryFolder, testDaemon } from '../support/daemon.ts'

const OTHER = '00000000-0000-4000-8000-000000000000'
const withExpect = (expect: string) => ({ swarm: { enabled: false }, store: { expect } })
const idOf = (root: string): string => readFileSync(join(root, 'id'), 'utf8').trim()

describe('[store] expect (spec disk.23)', () => {
  test('refuses a missing or different store, naming the key, the expected id and the found one', async () => {
    const folder = temporaryFolder()
    const start = (expect: string) => testDaemon({ folder, fileConfig: withExpect(expect) }, () => undefined)
    const absent = await start(OTHER).catch((error: unknown) => error as StartError)
    expect(absent).toBeInstanceOf(StartError)
    expect((absent as StartError).message).toContain('[store] expect')
    expect(existsSync(join(folder, 'root'))).toBe(false)
    mkdirSync(join(folder, 'root'), { mode: 0o700 })
    await expect(start(OTHER)).rejects.toThrow(StartError)
    expect(readdirSync(join(folder, 'root'))).toEqual([])

    const daemon = await testDaemon({ folder })
    const id = idOf(daemon.root)
    await daemon.running.close({ quick: true })
    const refusal = await start(OTHER).catch((error: unknown) => error as StartError)
    for (const part of ['[store] expect', OTHER, id]) expect((refusal as StartError).message).toContain(part)
    const again = await testDaemon({ folder, fileConfig: withExpect(id) })
    expect((await again.get('/v1/status')).body.store.id).toBe(id)
    expect(JSON.parse(readFileSync(join(folder, 'runtime.json'), 'utf8'))).toMatchObject({ storeId: id })
  })

  test('is the id of a store, in either case', () => {
    for (const text of ['x', '/mnt/models', OTHER.slice(1), `${OTHER} `])
      expect(() => mergeConfig(withExpect(text), { root: '/r' }, {}), text).toThrow(ConfigError)
    expect(mergeConfig(withExpect(OTHER.toUpperCase()), { root: '/r' }, {}).store.expect).toBe(OTHER)
    expect(mergeConfig({}, { root: '/r' }, {}).store.expect).toBeUndefined()
  })
})

describe('svcd expect', () => {
  const setUp = (text: string) => {
    const folder = temporaryFolder()
    const [root, config] = [join(folder, 'root'), join(folder, 'config.toml')]
    writeFileSync(config, text)
    const run = () => expectCommand([], parseFlags(['--config', config, '--root', root, 'expect']), { HOME: folder })
    return { folder, root, run, written: () => readFileSync(config, 'utf8') }
  }

  test('makes a store that is not there, and writes its id beside what the file says', async () => {
    const { root, run, written } = setUp('# mine\n[swarm]\nseed = false # not from here\n')
    const said = await run()
    expect(said).toContain(idOf(root))
    expect(written()).toBe(`# mine\n[swarm]\nseed = false # not from here\n\n[store]\nexpect = "${idOf(root)}"\n`)
    const before = written()
    await run()
    expect(written()).toBe(before)
  })

  test('works beside a running daemon, which has made the id', async () => {
    const { folder, root, run, written } = setUp('')
    await testDaemon({ folder })
    await run()
    expect(written()).toContain(idOf(root))
  })

  test('does not change an existing value', async () => {
    const { root, run, written } = setUp(`[store]\nexpect = "${OTHER}"\n`)
    await expect(run()).rejects.toThrow(StartError)
    expect(existsSync(root)).toBe(false)
    expect(written()).toBe(`[store]\nexpect = "${OTHER}"\n`)
  })
})

test('only the start that creates a store says so', async () => {
  const lines: unknown[][] = []
  const { createLog } = await import('../../src/log.ts')
  const log = Object.assign(Object.create(createLog('silent')), { info: (...line: unknown[]) => void lines.push(line) })
  const tellsOf = (id: string) => lines.filter(([fields]) => (fields as { id?: string }).id === id)
  const first = await testDaemon({ log })
  const id = idOf(first.root)
  expect(tellsOf(id)).toHaveLength(1)
  await first.running.close({ quick: true })
  lines.length = 0
  await testDaemon({ folder: first.folder, log })
  expect(tellsOf(id)).toEqual([])
})
