// Every command opens the store in one way: on each kind of root they all say the same, and leave a refused one alone.
import { chmodSync, existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openDiskStore } from '@svc/cas'
import { backUp, openBackup, openTarget } from '@svc/publish'
import { describe, expect, onTestFinished, test } from 'vitest'
import { STATE_FOLDERS } from '../../../internal/state/src/replace.ts'
import { moveStore } from '../../../library/src/copying/move-store.ts'
import { restoreStore } from '../../../library/src/copying/restore-store.ts'
import { checkConfig } from '../../src/commands/check.ts'
import { expectCommand } from '../../src/commands/expect.ts'
import { seedCommand } from '../../src/commands/seed.ts'
import { tagCommand } from '../../src/commands/tag.ts'
import { StartError } from '../../src/errors.ts'
import { type Flags, parseFlags } from '../../src/flags.ts'
import { orRefused } from '../../src/store-opening.ts'
import { sharedByFile, temporaryFolder, testDaemon } from '../support/daemon.ts'

interface Place {
  readonly folder: string
  readonly root: string
  readonly flags: (...words: string[]) => Flags
  readonly env: Record<string, string>
}

const work = { signal: new AbortController().signal, onProgress: () => undefined }

/** A backup of an empty store. */
const backup = sharedByFile(async (cleanUp) => {
  const daemon = await testDaemon({}, cleanUp)
  const to = join(daemon.folder, 'backup')
  const target = await openTarget({ kind: 'folder', path: to }, { isPrivate: true })
  const { body } = await daemon.post('/v1/snapshots', {})
  await backUp(target, { snapshotPath: body.path, blobPath: () => '' })
  await target.close()
  return to
})

const tag = ({ root, folder }: Place, ...words: string[]): Promise<void> =>
  tagCommand(words, { store: { root }, socketPath: join(folder, 'none.sock'), print: () => undefined })

/** Each resolves where the command does its work. */
const COMMANDS = {
  start: async ({ folder }: Place) => {
    const daemon = await testDaemon({ folder })
    await daemon.running.close({ quick: true })
  },
  '--check': async ({ flags, env }: Place) => void (await checkConfig(flags('--check'), env)),
  'tag ls': (place: Place) => tag(place, 'ls'),
  'tag set': (place: Place) =>
    tag(place, 'set', 'a/b:t').catch((error: { code?: string }) => {
      // it looked for the repository in a store
      if (error.code !== 'E_UNKNOWN_REF') throw error
    }),
  expect: async ({ flags, env }: Place) => void (await expectCommand([], flags('expect'), env)),
  move: async ({ root, folder }: Place) =>
    void (await orRefused(
      moveStore({ from: { root }, to: join(folder, 'to'), takeCharge: async () => undefined, ...work })
    )),
  seed: async ({ flags, env }: Place) => void (await seedCommand(['off'], flags('seed', 'off'), env)),
  restore: async ({ root }: Place) => {
    const from = await backup()
    const source = await openTarget({ kind: 'folder', path: from }, { readOnly: true })
    await orRefused(restoreStore({ backup: await openBackup(source), from, root, incomplete: false, ...work }))
  }
}
type Command = keyof typeof COMMANDS

/** Those whose verdict on a root is that of a start. */
const OPENERS = ['start', '--check', 'tag ls', 'tag set', 'expect', 'move'] as const satisfies readonly Command[]

async function makeStore(root: string): Promise<void> {
  const store = await openDiskStore({ root, folders: STATE_FOLDERS, hashThreads: 1 })
  await store.close()
}

/** Makes each kind of root, with a mode that svc would change in its own; and the commands that refuse it. */
const ROOTS: Record<string, { make: (root: string) => unknown; refuse: readonly Command[] }> = {
  absent: { make: () => undefined, refuse: ['tag ls', 'tag set', 'move'] },
  empty: { make: (root) => mkdirSync(root, { mode: 0o755 }), refuse: ['tag ls', 'tag set', 'move'] },
  'a store': { make: makeStore, refuse: ['restore'] },
  locked: {
    make: async (root) => {
      const store = await openDiskStore({ root, folders: STATE_FOLDERS, hashThreads: 1 })
      onTestFinished(() => store.close())
      chmodSync(root, 0o750)
    },
    // the others only read, or have nothing to do with the store
    refuse: ['start', 'tag set', 'move', 'restore']
  },
  foreign: {
    make: (root) => {
      mkdirSync(root, { mode: 0o755 })
      writeFileSync(join(root, 'thesis.txt'), 'x')
    },
    refuse: [...OPENERS, 'restore']
  },
  unsafe: {
    make: (root) => {
      mkdirSync(root)
      chmodSync(root, 0o777)
    },
    refuse: [...OPENERS, 'restore']
  },
  'a file': { make: (root) => writeFileSync(root, 'x'), refuse: [...OPENERS, 'restore'] },
  newer: {
    make: async (root) => {
      await makeStore(root)
      writeFileSync(join(root, 'format'), 'svc-store 2\n')
      chmodSync(root, 0o755)
    },
    refuse: [...OPENERS, 'restore']
  },
  'a store without its blobs': {
    make: async (root) => {
      await makeStore(root)
      rmSync(join(root, 'blobs'), { recursive: true })
      chmodSync(root, 0o755)
    },
    refuse: [...OPENERS, 'restore']
  },
  'a store without its state': {
    make: async (root) => {
      await makeStore(root)
      rmSync(join(root, 'state'), { recursive: true })
      writeFileSync(join(root, 'lock'), '1 1 flock\n')
      chmodSync(root, 0o755)
    },
    refuse: [...OPENERS, 'restore']
  },
  'half restored': {
    make: async (root) => {
      await makeStore(root)
      writeFileSync(join(root, 'moving.json'), '{"from":"/else","state":"copying","isRestore":true}\n')
      chmodSync(root, 0o755)
    },
    refuse: [...OPENERS, 'restore']
  }
}

/** Every name below a path, and itself, with modes and bytes. */
function asItIs(path: string): unknown {
  if (!existsSync(path)) return 'absent'
  const stat = lstatSync(path)
  const mode = (stat.mode & 0o7777).toString(8)
  if (!stat.isDirectory()) return [mode, readFileSync(path, 'latin1')]
  return [
    mode,
    readdirSync(path)
      .sort()
      .map((name) => [name, asItIs(join(path, name))])
  ]
}

async function placeOf(make: (root: string) => unknown): Promise<Place> {
  const folder = temporaryFolder()
  const [root, config] = [join(folder, 'root'), join(folder, 'config.toml')]
  writeFileSync(config, '[swarm]\nenabled = false\n')
  await make(root)
  return {
    folder,
    root,
    env: { HOME: folder },
    flags: (...words) => parseFlags(['--root', root, '--config', config, ...words])
  }
}

describe.each(Object.keys(ROOTS))('a root that is %s', (kind) => {
  const { make, refuse } = ROOTS[kind]!
  test('each command takes it, or refuses it in the same words as a start and leaves it as it was', async () => {
    const words = new Map<Command, string>()
    for (const [name, run] of Object.entries(COMMANDS) as [Command, (place: Place) => Promise<void>][]) {
      const place = await placeOf(make)
      const before = asItIs(place.root)
      const refusal = await run(place).then(
        () => undefined,
        (error: unknown) => error as Error
      )
      expect([name, refusal?.message ?? 'done']).toEqual([name, refuse.includes(name) ? expect.any(String) : 'done'])
      if (refusal === undefined) continue
      // exit code 2
      expect([name, refusal]).toEqual([name, expect.any(StartError)])
      expect([name, asItIs(place.root)]).toEqual([name, before])
      expect(existsSync(join(place.folder, 'to'))).toBe(false)
      words.set(name, refusal.message.replaceAll(place.folder, ''))
    }
    if (!refuse.includes('start')) return
    const start = words.get('start')
    for (const name of OPENERS)
      if (words.has(name) && kind !== 'locked') expect([name, words.get(name)]).toEqual([name, start])
  })
})

test.each(['absent', 'empty'])('what does not make a store leaves a root that is %s alone', async (kind) => {
  for (const name of ['--check', 'seed', 'tag set'] as const) {
    const place = await placeOf(ROOTS[kind]!.make)
    const before = asItIs(place.root)
    await COMMANDS[name](place).catch(() => undefined)
    expect([name, asItIs(place.root)]).toEqual([name, before])
    // and the start that follows makes one
    await COMMANDS.start(place)
  }
})
