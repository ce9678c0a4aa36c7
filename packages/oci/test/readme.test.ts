import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { digestOf } from '../src/document.ts'
import * as api from '../src/index.ts'

test('the example of the README runs', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'svc-oci-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const path = join(folder, 'tiny-q8_0.gguf')
  writeFileSync(path, 'weights')
  const digest = digestOf(Buffer.from('weights'))
  const files = [{ name: 'tiny-q8_0.gguf', kind: 'weights.gguf', sizeBytes: 7, digest, path }]
  const code = /```ts\n([\s\S]*?)```/.exec(
    readFileSync(new URL('../README.md', import.meta.url), 'utf8')
  )?.[1] as string
  const body = code.replace(/^import \{(.*)\} from '@svc\/oci'$/m, 'const {$1} = api')
  const given = { api, files, manifestDigest: digest, folder: join(folder, 'layout') }
  const printed: unknown[][] = []
  const run = new Function(...Object.keys(given), 'console', `return (async () => {${body}})()`) as (
    ...values: unknown[]
  ) => Promise<void>
  await run(...Object.values(given), { log: (...line: unknown[]) => printed.push(line) })
  const blob = join(folder, 'layout/blobs/sha256', digest.slice('sha256:'.length))
  expect(printed).toEqual([['tiny-q8_0.gguf', 7, { path: blob, offset: 0, sizeBytes: 7 }]])
})
