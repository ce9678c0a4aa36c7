// A root that had a store must have it still: where its disk is away, no new store is made in silence.
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync
} from 'node:fs'
import { join } from 'node:path'
import { backUp, openBackup, openTarget } from '@svc/publish'
import { describe, expect, test } from 'vitest'
import { RootMemory } from '../../../internal/state/src/root-memory.ts'
import { moveStore } from '../../../library/src/copying/move-store.ts'
import { restoreStore } from '../../../library/src/copying/restore-store.ts'
import { checkConfig } from '../../src/commands/check.ts'
import { expectCommand } from '../../src/commands/expect.ts'
import { tagCommand } from '../../src/commands/tag.ts'
import { programConfig } from '../../src/config/config.ts'
import { StartError } from '../../src/errors.ts'
import { parseFlags } from '../../src/flags.ts'
import { createLog } from '../../src/log.ts'
import { temporaryFolder, testDaemon } from '../support/daemon.ts'

const OFF = { swarm: { enabled: false } }
const idOf = (root: string): string => readFileSync(join(root, 'id'), 'utf8').trim()

/** A home folder with a root, in which daemons and commands run. */
class Home {
  readonly folder = temporaryFolder()
  readonly root = join(this.folder, 'root')
  readonly state = join(this.folder, '.local/state')
  readonly memory = join(this.state, 'svc/roots')
  readonly warned: unknown[] = []
  env: Record<string, string> = { HOME: this.folder }

  configOf(...words: string[]) {
    return programConfig(OFF, parseFlags(['--root', this.root, ...words]), this.env)
  }

  /** A start and a stop. @returns the id of the store */
  async started(...words: string[]): Promise<string> {
    const log = Object.assign(Object.create(createLog('silent')), {
      warn: (fields: unknown) => void this.warned.push(fields)
    })
    const daemon = await testDaemon({ folder: this.folder, config: this.configOf(...words), log }, () => undefined)
    daemon.agent.destroy()
    await daemon.running.close({ quick: true })
    return idOf(this.root)
  }

  check = (...words: string[]): Promise<string[]> =>
    checkConfig(parseFlags(['--check', '--root', this.root, ...words]), { ...this.env, SVC_CONFIG: this.config })

  get config(): string {
    const file = join(this.folder, 'config.toml')
    writeFileSync(file, '[swarm]\nenabled = false\n')
    return file
  }

  /** What each command says of the root. */
  async refusals(): Promise<string[]> {
    const { store } = this.configOf()
    const tag = (...words: string[]) =>
      tagCommand(words, { store, socketPath: join(this.folder, 'none'), print: () => undefined })
    const expectId = () =>
      expectCommand([], parseFlags(['--root', this.root, '--config', this.config, 'expect']), this.env)
    const commands = [() => this.started(), () => this.check(), () => tag('ls'), () => tag('set', 'a/b:t'), expectId]
    const said = []
    for (const run of commands) {
      const error = await run().then(
        () => new Error('done'),
        (refusal: Error) => refusal
      )
      expect([error.message, error instanceof StartError]).toEqual([error.message, true])
      said.push(error.message)
    }
    return said
  }
}

describe('a root that had a store (spec disk.26)', () => {
  test('is refused by every command while it has none, naming the store and the way out; nothing is written', async () => {
    const home = new Home()
    const id = await home.started()
    renameSync(home.root, join(home.folder, 'away'))
    for (const content of ['absent', 'empty']) {
      if (content === 'empty') mkdirSync(home.root, { mode: 0o755 })
      const said = new Set(await home.refusals())
      expect([...said]).toEqual([expect.stringContaining(id)])
      for (const part of [content, 'svcd --new']) expect([...said][0]).toContain(part)
      expect(existsSync(home.root) && [readdirSync(home.root), statSync(home.root).mode & 0o777]).toEqual(
        content === 'absent' ? false : [[], 0o755]
      )
    }
    rmSync(home.root, { recursive: true })
    renameSync(join(home.folder, 'away'), home.root)
    expect(await home.started()).toBe(id)
    expect(home.warned).toEqual([])
  })

  test('is refused while it has another, naming both; --new takes that one, and expect says which is right', async () => {
    const home = new Home()
    const first = await home.started()
    renameSync(home.root, join(home.folder, 'first'))
    await testDaemon({ folder: home.folder }).then((daemon) => daemon.running.close({ quick: true }))
    const second = idOf(home.root)
    expect(second).not.toBe(first)
    const said = new Set(await home.refusals())
    expect(said.size).toBe(1)
    for (const part of [first, second, 'svcd --new']) expect([...said][0]).toContain(part)
    await home.check('--new')
    expect(await home.started('--new')).toBe(second)
    expect(await home.started()).toBe(second)

    renameSync(home.root, join(home.folder, 'second'))
    renameSync(join(home.folder, 'first'), home.root)
    await expect(home.started()).rejects.toThrow(second)
    const config = programConfig({ ...OFF, store: { expect: first } }, parseFlags(['--root', home.root]), home.env)
    const daemon = await testDaemon({ folder: home.folder, config })
    await daemon.running.close({ quick: true })
    expect(await home.started()).toBe(first)
  })

  test('gets a new store with --new, which is remembered from then on', async () => {
    const home = new Home()
    const first = await home.started()
    rmSync(home.root, { recursive: true })
    const second = await home.started('--new')
    expect(second).not.toBe(first)
    expect(await home.started()).toBe(second)
  })

  test('may be filled again by a restore of its own backup, and by no other store', async () => {
    const home = new Home()
    const work = { signal: new AbortController().signal, onProgress: () => undefined }
    const own = await testDaemon({ folder: home.folder, config: home.configOf() })
    const to = join(home.folder, 'backup')
    const target = await openTarget({ kind: 'folder', path: to }, { isPrivate: true })
    await backUp(target, { snapshotPath: (await own.post('/v1/snapshots', {})).body.path, blobPath: () => '' })
    await target.close()
    await own.running.close({ quick: true })
    const id = idOf(home.root)
    rmSync(home.root, { recursive: true })
    mkdirSync(home.root, { mode: 0o755 })

    const other = await testDaemon()
    await other.running.close({ quick: true })
    const { store } = home.configOf()
    const move = (isNew: boolean) =>
      moveStore({
        from: { root: other.root, memory: home.memory, isNew },
        to: home.root,
        takeCharge: async () => undefined,
        ...work
      })
    await expect(move(false)).rejects.toThrow(id)
    expect([readdirSync(home.root), statSync(home.root).mode & 0o777]).toEqual([[], 0o755])

    const source = await openTarget({ kind: 'folder', path: to }, { readOnly: true })
    await restoreStore({ backup: await openBackup(source), from: to, ...store, incomplete: false, ...work })
    expect(await home.started()).toBe(id)
    rmSync(home.root, { recursive: true })
    await move(true)
    expect(idOf(home.root)).toBe(idOf(other.root))
  })
})

describe('the memory of roots', () => {
  test('is private, and outside the store; one inside the root is not used', async () => {
    const home = new Home()
    const umask = process.umask(0o022)
    await home.started().finally(() => process.umask(umask))
    for (const [path, mode] of [
      [join(home.state, 'svc'), 0o700],
      [home.memory, 0o700],
      [join(home.memory, readdirSync(home.memory)[0]!), 0o600]
    ] as const)
      expect([path, statSync(path).mode & 0o777]).toEqual([path, mode])

    // such as a container's, whose home is its volume
    const volume = new Home()
    volume.env = { HOME: volume.root }
    await volume.started()
    expect(readdirSync(volume.root)).not.toContain('.local')
    rmSync(volume.root, { recursive: true })
    await volume.started()
    expect(volume.warned).toEqual([])
    // and nothing is remembered by a program that embeds the daemon
    expect(existsSync(join(volume.folder, '.local'))).toBe(false)
  })

  const damages: Record<string, (path: string) => void> = {
    garbage: (path) => writeFileSync(path, '\0\u00ff{'),
    null: (path) => writeFileSync(path, 'null'),
    'an empty file': (path) => writeFileSync(path, ''),
    'half of it': (path) => writeFileSync(path, readFileSync(path).subarray(0, 40)),
    'that of another root': (path) => writeFileSync(path, readFileSync(path, 'utf8').replace('/root"', '/boot"')),
    'no id': (path) => writeFileSync(path, readFileSync(path, 'utf8').replace(/"id":"./, '"id":"x')),
    'a large file': (path) => writeFileSync(path, ' '.repeat(1 << 20))
  }
  test.each(Object.keys(damages))('with %s stops no start, says so, and is written again', async (name) => {
    const home = new Home()
    const id = await home.started()
    const path = join(home.memory, readdirSync(home.memory)[0]!)
    damages[name]!(path)
    expect((await home.check()).join('\n')).toContain(path)
    expect(await home.started()).toBe(id)
    expect(home.warned).toEqual([{ problem: expect.stringContaining(path) }])
    renameSync(home.root, join(home.folder, 'away'))
    await expect(home.started()).rejects.toThrow(id)
    expect(home.warned).toHaveLength(1)
  })

  test('that cannot be read or written stops no start, and says so', async () => {
    for (const spoil of [
      (path: string) => mkdirSync(path),
      (path: string) => mkdirSync(join(path, 'x'), { recursive: true })
    ]) {
      const home = new Home()
      await home.started()
      const path = join(home.memory, readdirSync(home.memory)[0]!)
      rmSync(path)
      spoil(path)
      await home.started()
      expect(home.warned).toEqual([expect.anything(), expect.anything()])
    }
    const home = new Home()
    mkdirSync(home.state, { recursive: true })
    writeFileSync(join(home.state, 'svc'), '')
    await home.started()
    expect(home.warned).toEqual([expect.anything()])
  })

  test('has at most 256 roots: those that were not opened for longest go', async () => {
    const folder = join(temporaryFolder(), 'svc/roots')
    const memory = new RootMemory(folder)
    const id = '00000000-0000-4000-8000-000000000000'
    await memory.remember('/first', id)
    for (let i = 0; i < 256; i++) writeFileSync(join(folder, `${i}.json`), '')
    for (const name of readdirSync(folder)) utimesSync(join(folder, name), 1, 1)
    utimesSync(join(folder, '7.json'), 0, 0)
    // it is opened again
    await memory.remember('/first', id)
    await memory.remember('/second', id)
    expect(readdirSync(folder)).toHaveLength(256)
    expect(existsSync(join(folder, '7.json'))).toBe(false)
    for (const root of ['/first', '/second']) expect(await memory.recall(root)).toEqual({ id })
  })
})
