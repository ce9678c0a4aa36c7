import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { loadFilePort } from '@svc/internal-files'
import { digestFromHex } from '@svc/ref'
import { Faults } from '@svc/testkit/file-faults'
import { describe, expect, it } from 'vitest'
import { ReplacedFiles } from '../src/replace.ts'
import { type RepoState, Repos } from '../src/repos.ts'
import { temporaryFolder } from './temporary-folder.ts'

const codeOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'done',
    (error: NodeJS.ErrnoException) => error.code ?? error.name
  )
const state: RepoState = { index: digestFromHex('a'.repeat(64)), tags: new Map() }

describe('state files', () => {
  it('are the old or the new ones, without leftovers, whichever operation fails', async () => {
    const root = temporaryFolder()
    const plan = new Faults()
    const files = await ReplacedFiles.open(join(root, 'state'), await loadFilePort(plan.filePort))
    let failures = 0
    for (let n = 1; ; n++) {
      const file = join(root, 'state', 'repos', `ns${n}`, 'name.json')
      await files.write(join(root, 'state', 'old.json'), 'old')
      plan.arm(n)
      const made = await codeOf(files.write(file, 'made'))
      const replaced = await codeOf(files.write(join(root, 'state', 'old.json'), 'new'))
      const { fired } = plan
      plan.arm(0)
      expect(readdirSync(join(root, 'state', 'tmp'))).toEqual([])
      expect(['old', 'new']).toContain(readFileSync(join(root, 'state', 'old.json'), 'utf8'))
      if (made === 'done') expect(readFileSync(file, 'utf8')).toBe('made')
      if (replaced === 'done') expect(readFileSync(join(root, 'state', 'old.json'), 'utf8')).toBe('new')
      expect([made, replaced].filter((each) => each === 'EIO').length).toBe(
        fired && `${made}${replaced}` !== 'donedone' ? 1 : 0
      )
      if (!fired) break
      failures += made === 'done' && replaced === 'done' ? 0 : 1
    }
    expect(failures).toBeGreaterThan(12)
  })

  it('count as changed once durable: a change whose last sync failed is written again, even by an unchanged import', async () => {
    const root = temporaryFolder()
    const plan = new Faults({ only: '^fsync$' })
    const files = await ReplacedFiles.open(join(root, 'state'), await loadFilePort(plan.filePort))
    const repos = new Repos(root, files)
    const repo = { ns: 'ns', name: 'name' }
    await repos.update({ ns: 'ns', name: 'other' }, async () => state)
    // the file's own sync comes first, then that of its folder.
    plan.arm(2)
    expect(await codeOf(repos.update(repo, async () => state))).toBe('EIO')
    plan.arm(0)
    // readers see the new bytes, which are not durable yet.
    expect(await repos.read('ns', 'name')).toEqual(state)
    plan.arm(1)
    expect(await codeOf(repos.update(repo, async (current) => current!))).toBe('EIO')
    plan.arm(0)
    expect(await codeOf(repos.update(repo, async (current) => current!))).toBe('done')
    // now they are: nothing is synced a second time.
    plan.arm(1)
    expect(await codeOf(repos.update(repo, async (current) => current!))).toBe('done')
    expect(plan.seen).toBe(0)
  })

  it('of a killed daemon are synced before they are used', async () => {
    const root = temporaryFolder()
    await new Repos(root, await ReplacedFiles.open(join(root, 'state'))).update(
      { ns: 'ns', name: 'name' },
      async () => state
    )
    writeFileSync(join(root, 'state', 'tmp', 'left'), 'x')
    const plan = new Faults({ only: '^fsync$' })
    const repos = new Repos(root, await ReplacedFiles.open(join(root, 'state'), await loadFilePort(plan.filePort)))
    expect(readdirSync(join(root, 'state', 'tmp'))).toEqual([])
    plan.arm(0)
    await repos.update({ ns: 'ns', name: 'name' }, async (current) => current!)
    // state, repos and ns in their parents; the file; its folder
    expect(plan.seen).toBeGreaterThanOrEqual(4)
  })
})
