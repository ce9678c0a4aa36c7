import { chmodSync, chownSync, lchownSync, mkdirSync, readdirSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createView, readView, recoverViews, removeView, type ViewError } from '@svc/view'
import { describe, expect, test } from 'vitest'
import { type Artifact, makeArtifact, temporaryFolder } from './support/artifact.ts'
import { treeOf } from './support/tree.ts'

const model = (): Promise<Artifact> =>
  makeArtifact(temporaryFolder(), [{ name: 'a-q8_0.gguf', kind: 'weights.gguf', content: 'weights' }])
const codeOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => 'resolved',
    (error: ViewError) => error.code
  )
const namesIn = (folder: string): string[] => readdirSync(folder).sort()

/** Another user of the machine, in a folder in which everybody may make files, such as /tmp. */
describe.skipIf(process.geteuid?.() !== 0)('in a folder shared with another user (as root)', () => {
  const STRANGER = 65_533
  /** A name under which a process that has ended made a view. */
  const workName = (pid: number): string => `.svc-view-00000000-00000000-${pid}-1-0123456789ab`

  function sharedFolder(): string {
    const folder = temporaryFolder()
    chmodSync(folder, 0o1777)
    return folder
  }

  function give(path: string): void {
    for (const entry of readdirSync(path, { withFileTypes: true })) {
      if (entry.isDirectory()) give(join(path, entry.name))
      lchownSync(join(path, entry.name), STRANGER, STRANGER)
    }
    chownSync(path, STRANGER, STRANGER)
  }

  test("another user's leftovers are neither used nor removed, and block no one", async () => {
    const folder = sharedFolder()
    const artifact = await model()
    const work = join(folder, workName(1))
    await createView(artifact, { path: join(folder, 'x'), mode: 'copy' })
    mkdirSync(work)
    renameSync(join(folder, 'x'), join(work, 'old'))
    writeFileSync(join(work, 'target'), 'place')
    give(work)
    // that it cannot be read is nothing to us either
    const unreadable = join(folder, workName(2))
    mkdirSync(join(unreadable, 'old'), { recursive: true })
    mkdirSync(join(unreadable, 'target'))
    give(unreadable)
    const before = treeOf(work)
    expect(await readView(join(folder, 'place'))).toBeUndefined()
    expect(await removeView(join(folder, 'place'))).toBe(false)
    expect(await recoverViews(folder)).toBe(0)
    expect((await createView(artifact, { path: join(folder, 'mine') })).made).toBe(true)
    expect(namesIn(folder)).toEqual([workName(1), workName(2), 'mine'].sort())
    expect(treeOf(work)).toEqual(before)
  })

  test("another user's view does not count as ours", async () => {
    const folder = sharedFolder()
    const artifact = await model()
    const path = join(folder, 'place')
    await createView(artifact, { path, mode: 'copy' })
    give(path)
    expect(await codeOf(createView(artifact, { path, mode: 'copy' }))).toBe('E_NOT_A_VIEW')
    expect(await codeOf(createView(artifact, { path }))).toBe('E_NOT_A_VIEW')
    expect(await codeOf(removeView(path))).toBe('E_NOT_A_VIEW')
    // where nobody else may write, owners do not matter: a file system may map them
    chmodSync(folder, 0o755)
    expect((await createView(artifact, { path, mode: 'copy' })).made).toBe(false)
    expect(await removeView(path)).toBe(true)
  })

  test("our own user's leftovers are cleaned up", async () => {
    const folder = sharedFolder()
    mkdirSync(join(folder, workName(1)))
    expect(await recoverViews(folder)).toBe(1)
    expect(namesIn(folder)).toEqual([])
  })
})
