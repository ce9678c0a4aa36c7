import { expect, test } from 'vitest'
import { bigRepo, fakeHub, finished, importRepo, manifestsOf, rigOf, SMALL, storedBlobs, writeRepo, wrongBlobs } from './fixtures.ts'

test('300 files with odd names: sealed as a local import of the same files, but for the two hub annotations', async () => {
  const repo = bigRepo()
  expect(repo.files).toHaveLength(300)
  const fake = await fakeHub({ pageSize: 50 })
  const commit = fake.commit(repo)
  const rig = await rigOf(fake)
  const job = await importRepo(rig, repo.id)
  expect(job).toMatchObject({ state: 'done', as: 'odd.org/big_model-7b', ref: 'odd.org/big_model-7b', filesDone: 300, filesTotal: 300 })
  const local = await finished(rig, await rig.client.importLocal({ paths: [await writeRepo(repo.files)], as: 'local/copy' }))
  expect(local.state).toBe('done')
  expect(job.result?.quants).toEqual(['bf16', 'q4_k_m', 'q8_0'])
  expect(job.result?.skipped).toBe(local.result?.skipped)
  const [fromHub, fromDisk] = [await manifestsOf(rig, job), await manifestsOf(rig, local)]
  expect(fromHub.map(manifest => manifest.files)).toEqual(fromDisk.map(manifest => manifest.files))
  const hubNames = { 'svc.hf.repo': repo.id, 'svc.hf.revision': commit }
  expect(fromHub.map(manifest => manifest.annotations)).toEqual(fromDisk.map(manifest => ({ ...manifest.annotations, ...hubNames })))
  expect(fromDisk[0]?.annotations['svc.license']).toBe('MIT')
  expect(await wrongBlobs(rig)).toEqual([])
  // Every byte at the commit, never at the branch.
  const resolved = fake.requests.filter(request => request.stage === 'resolve')
  expect(resolved.every(request => request.url.includes(`/${commit}/`))).toBe(true)
  expect(new Set(fake.requests.filter(request => request.stage === 'tree').map(request => request.url)).size).toBeGreaterThan(5)
})

test('a second import fetches no large file again and ends in the same documents', async () => {
  const fake = await fakeHub({ repos: [SMALL] })
  const rig = await rigOf(fake, { skipUnrecognized: true })
  const first = await importRepo(rig, SMALL.id)
  const before = new Map(fake.bytesSent)
  const second = await importRepo(rig, SMALL.id)
  expect(second.result).toEqual(first.result)
  for (const path of ['model-Q4_K_M.gguf', 'model-q8_0.gguf']) {
    expect(before.get(path)).toBeGreaterThan(0)
    // One byte is asked for to see whether the repository is gated.
    expect(fake.bytesSent.get(path)! - before.get(path)!).toBeLessThanOrEqual(1)
  }
})

test('unrecognised files are fetched and checked, not stored; the switch spares them', async () => {
  const fake = await fakeHub({ repos: [SMALL] })
  const rig = await rigOf(fake)
  const job = await importRepo(rig, SMALL.id)
  expect(job.result?.skipped).toBe(2)
  expect(fake.bytesSent.get('extra.bin')).toBe(70_000)
  const spared = await fakeHub({ repos: [SMALL] })
  const rigB = await rigOf(spared, { skipUnrecognized: true })
  const jobB = await importRepo(rigB, SMALL.id)
  expect(spared.bytesSent.has('extra.bin')).toBe(false)
  expect(jobB.result).toEqual(job.result)
  expect(await storedBlobs(rigB)).toEqual(await storedBlobs(rig))
})

test('progress: totals are known at once and never grow', async () => {
  const fake = await fakeHub({ repos: [SMALL] })
  fake.setFaults(request => (request.stage === 'cdn' ? { kind: 'drip', stepBytes: 20_000, everyMs: 10 } : undefined))
  const rig = await rigOf(fake)
  const total = SMALL.files.reduce((sum, { content }) => sum + (content instanceof Uint8Array ? content.length : content.sizeBytes), 0)
  const first = await rig.client.importHf({ repo: SMALL.id })
  expect(first).toMatchObject({ state: 'waiting', kind: 'import-hf', filesDone: 0, filesTotal: 8, bytesTotal: total })
  const seen = [first]
  for (let job = first; job.state !== 'done'; ) {
    await new Promise(resolve => setTimeout(resolve, 10))
    job = await rig.client.job(first.id)
    expect(job.state).not.toBe('failed')
    seen.push(job)
  }
  expect(seen.every(job => job.filesTotal === 8 && job.bytesTotal === total)).toBe(true)
  const bytes = seen.map(job => job.bytesDone ?? 0)
  expect(bytes).toEqual([...bytes].sort((a, b) => a - b))
  expect(bytes.some(count => count > 0 && count < total)).toBe(true)
  expect(seen.some(job => job.files?.some(file => file.name === 'model-q8_0.gguf' && file.bytesDone > 0))).toBe(true)
  expect(seen.at(-1)).toMatchObject({ filesDone: 8, bytesDone: total })
})

test('a wait for the rate limit shows in the job and goes away', async () => {
  const fake = await fakeHub({ repos: [SMALL] })
  let release = (): void => undefined
  const pause = new Promise<void>(resolve => {
    release = resolve
  })
  const rig = await rigOf(fake, { hub: { retry: { sleep: () => pause } } })
  let limited = true
  fake.setFaults(request =>
    limited && request.stage === 'cdn' && request.headers['range'] !== 'bytes=0-0'
      ? { kind: 'status', status: 429, headers: { 'retry-after': '17' } }
      : undefined
  )
  const job = await rig.client.importHf({ repo: SMALL.id })
  let shown = job
  while (shown.message === undefined) {
    expect(shown.state).not.toBe('failed')
    shown = await rig.client.job(job.id)
  }
  expect(shown.message).toContain('17')
  limited = false
  release()
  const done = await finished(rig, job)
  expect(done.state).toBe('done')
  expect(done.message).toBeUndefined()
})

test('identical files, large and small, under several names', async () => {
  const same = { seed: 21, sizeBytes: 200_000 }
  const repo = {
    id: 'Org/Twins',
    files: [
      { path: 'a-q4_0.gguf', content: same },
      { path: 'b/b-q8_0.gguf', content: same },
      { path: 'copy.bin', content: same },
      { path: 'tokenizer.json', content: { seed: 22, sizeBytes: 20_000 }, lfs: true },
      { path: 'sub/tokenizer.json', content: { seed: 22, sizeBytes: 20_000 }, lfs: true },
      { path: 'vocab.json', content: Buffer.from('{"x":1}') },
      { path: 'special_tokens_map.json', content: Buffer.from('{"x":1}') },
      { path: 'config.json', content: Buffer.from('{"x":1}') },
      { path: 'other.json', content: Buffer.from('{"x":1}') }
    ]
  }
  const rig = await rigOf(await fakeHub({ repos: [repo] }))
  const job = await importRepo(rig, repo.id)
  expect(job.error).toBeUndefined()
  const local = await finished(rig, await rig.client.importLocal({ paths: [await writeRepo(repo.files)], as: 'local/twins' }))
  expect((await manifestsOf(rig, job)).map(({ files }) => files)).toEqual((await manifestsOf(rig, local)).map(({ files }) => files))
})

test('a revision is pinned when the import is accepted, and recorded', async () => {
  const fake = await fakeHub()
  const old = fake.commit({ ...SMALL, branch: 'refs/pr/1' })
  fake.commit({ ...SMALL, files: SMALL.files.slice(1) })
  const rig = await rigOf(fake)
  const job = await importRepo(rig, 'some-org/small.model', 'refs/pr/1')
  const [manifest] = await manifestsOf(rig, job)
  expect(manifest?.annotations).toMatchObject({ 'svc.hf.repo': SMALL.id, 'svc.hf.revision': old })
  const state = await rig.daemon.context.artifacts.read(job.result!.manifests[0] as never)
  expect(state).toMatchObject({ restricted: false, source: { kind: 'hf', repo: SMALL.id, revision: old } })
})

test('what needed a token is marked as restricted', async () => {
  for (const flags of [{ private: true }, { gated: 'auto' as const }]) {
    const fake = await fakeHub({ repos: [{ ...SMALL, ...flags }], tokens: ['hf_t'] })
    const rig = await rigOf(fake, { token: 'hf_t' })
    const job = await importRepo(rig, SMALL.id)
    expect(job.state).toBe('done')
    const state = await rig.daemon.context.artifacts.read(job.result!.manifests[0] as never)
    expect(state?.restricted).toBe(true)
  }
})

test('a renamed repository keeps the name that was asked for, and says so', async () => {
  const fake = await fakeHub({ repos: [{ ...SMALL, formerId: 'Old-Org/Old-Name' }] })
  const rig = await rigOf(fake)
  const job = await importRepo(rig, 'Old-Org/Old-Name')
  expect(job).toMatchObject({ state: 'done', as: 'old-org/old-name' })
  expect(job.result?.warnings?.some(warning => String(warning).includes(SMALL.id))).toBe(true)
  expect((await manifestsOf(rig, job))[0]?.annotations['svc.hf.repo']).toBe(SMALL.id)
})

test('a repository without weights is a failed job', async () => {
  const fake = await fakeHub({ repos: [{ id: 'a/b', files: [{ path: 'tokenizer.json', content: Buffer.from('{}') }] }] })
  const rig = await rigOf(fake)
  expect((await importRepo(rig, 'a/b')).error?.error.code).toBe('E_NOT_IMPORTABLE')
})

test('two imports at once share the bound on requests', async () => {
  const fake = await fakeHub({ repos: [SMALL, { ...SMALL, id: 'Other/Model' }] })
  fake.setFaults(request => (request.stage === 'cdn' ? { kind: 'drip', stepBytes: 30_000, everyMs: 2 } : undefined))
  const rig = await rigOf(fake, { hub: { limits: { rangeBytes: 16 << 10, writeBytes: 4 << 10, smallFileBytes: 0, ranges: 3 } } })
  const jobs = await Promise.all([rig.client.importHf({ repo: SMALL.id }), rig.client.importHf({ repo: 'Other/Model' })])
  const done = await Promise.all(jobs.map(job => finished(rig, job)))
  expect(done.map(job => job.state)).toEqual(['done', 'done'])
  expect(done[0]?.result?.quants).toEqual(done[1]?.result?.quants)
})
