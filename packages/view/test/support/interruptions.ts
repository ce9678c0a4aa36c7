import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { createView, readView, recoverViews, type ViewMode } from '@svc/view'
import { expect } from 'vitest'
import { type Artifact, makeArtifact } from './artifact.ts'
import type { ViewJob } from './view-child.ts'

const CHILD = fileURLToPath(new URL('./view-child.ts', import.meta.url))
const required = process.env.SVC_REQUIRE_INTEROP === '1'
/** Whether system calls can be interrupted here; with SVC_REQUIRE_INTEROP=1 tests run, and fail, without strace. */
export const canInterrupt =
  required || spawnSync('strace', ['-f', '-e', 'inject=fsync:error=EIO', 'true'], { stdio: 'ignore' }).status === 0

/** What is done to the place `view` in a folder, and what may be there afterwards. */
export type Deed = 'create' | 'replace' | 'remove'

/** Two models of one store, and a place that the second is to take. */
export interface Scene {
  readonly folder: string
  readonly place: string
  readonly before: Artifact | undefined
  readonly after: Artifact | undefined
  readonly job: string
}

const model = (store: string, seed: number): Promise<Artifact> =>
  makeArtifact(store, [
    { name: `m${seed}-00001-of-00002.gguf`, kind: 'weights.gguf', content: `first ${seed}`.repeat(100), part: 1 },
    { name: `m${seed}-00002-of-00002.gguf`, kind: 'weights.gguf', content: `second ${seed}`, part: 2 },
    { name: 'tokenizer.tar', kind: 'tokenizer', content: { 'tokenizer.json': `{"t":${seed}}`, 'sub/merges.txt': 'a' } }
  ])

export async function setScene(folder: string, deed: Deed, mode: ViewMode): Promise<Scene> {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  const store = join(folder, 'store')
  const place = join(folder, 'place')
  const [one, two] = [await model(store, 1), await model(store, 2)]
  if (deed !== 'create') await createView(one, { path: place, mode })
  const { files, manifestDigest } = two
  const does = deed === 'remove' ? 'remove' : 'create'
  const job: ViewJob = { does, path: place, mode, store, manifestDigest, files }
  writeFileSync(join(folder, 'job.json'), JSON.stringify(job))
  return {
    folder,
    place,
    before: deed === 'create' ? undefined : one,
    after: deed === 'remove' ? undefined : two,
    job: join(folder, 'job.json')
  }
}

/** Runs the child with `inject` on its system calls. @returns what it said; nothing when it was killed */
export function interrupted(scene: Scene, inject: string | undefined): string {
  const calls = inject?.slice(0, inject.indexOf(':'))
  // one thread for the file system, so that calls are counted as they come: strace counts by thread.
  const env = { ...process.env, UV_THREADPOOL_SIZE: '1' }
  const trace = inject === undefined ? [] : ['-e', `trace=${calls}`, '-e', `inject=${inject}`]
  const args = ['-f', '-o', '/dev/null', ...trace, process.execPath, '--conditions=svc-source', CHILD, scene.job]
  return spawnSync('strace', args, { env, encoding: 'utf8' }).stdout.trim()
}

/** Names beside the place that are not the scene's. */
export const strayNames = ({ folder }: Scene): string[] =>
  readdirSync(folder).filter((name) => !['store', 'place', 'job.json'].includes(name))

/**
 * Which model is at the place; undefined for none. Checks that it is whole: every file has its bytes.
 */
export async function whatIsThere(scene: Scene): Promise<'before' | 'after' | undefined> {
  const view = await readView(scene.place)
  if (view === undefined) return undefined
  const which = view.manifestDigest === scene.before?.manifestDigest ? 'before' : 'after'
  const artifact = scene[which]
  expect(view.manifestDigest).toBe(artifact?.manifestDigest)
  expect(view.files).toHaveLength(4)
  for (const { path, digest, sizeBytes } of view.files) {
    const bytes = readFileSync(path)
    expect(bytes.length).toBe(sizeBytes)
    if (digest !== undefined) expect(`sha256:${createHash('sha256').update(bytes).digest('hex')}`).toBe(digest)
  }
  return which
}

/** After a kill: the model before or after is there, leftovers are cleaned up, the blobs are unchanged. */
export async function checkAfterKill(scene: Scene): Promise<'before' | 'after' | 'nothing'> {
  const there = await whatIsThere(scene)
  const { before, after } = scene
  if (there === undefined) expect(before === undefined || after === undefined).toBe(true)
  await recoverViews(scene.folder)
  expect(strayNames(scene)).toEqual([])
  expect(await whatIsThere(scene)).toBe(there)
  for (const artifact of [before, after])
    for (const { digest } of artifact?.files ?? []) expect(existsSync(artifact!.blobPath(digest))).toBe(true)
  return there ?? 'nothing'
}
