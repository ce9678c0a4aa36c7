// `pnpm demo NAME` tells its story to the end, and leaves nothing behind.
import { execFile } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'

const root = fileURLToPath(new URL('..', import.meta.url))
const run = promisify(execFile)

test.each([
  ['mirror', ['Internet access is lost', 'model.safetensors', '404 RepoNotFound']],
  ['life', ['newer', 'away', 'comes back', 'of the weights were here', 'byte-identical']],
  ['airgap', ['Carry the file over on a disk', 'a copy with one flipped bit is rejected', 'the manifest digests match']]
])('demo %s', async (name, told) => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-demo-test-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const args = ['--conditions=svc-source', '--disable-warning=ExperimentalWarning', 'scripts/demo/main.ts', name]
  const { stdout } = await run(process.execPath, args, { cwd: root, env: { ...process.env, TMPDIR: folder } })
  for (const part of told) expect(stdout).toContain(part)
  expect(readdirSync(folder)).toEqual([])
})

test('an unknown demo is refused', async () => {
  const args = ['--conditions=svc-source', 'scripts/demo/main.ts', 'nothing']
  await expect(run(process.execPath, args, { cwd: root })).rejects.toMatchObject({ code: 2 })
})
