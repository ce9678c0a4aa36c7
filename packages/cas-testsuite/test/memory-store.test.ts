// The store in memory, by the example of the README: it is how the suite is used.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { ContractApi } from '@svc/cas-testsuite'
import { afterAll, describe, expect, test } from 'vitest'

const folder = mkdtempSync(join(tmpdir(), 'svc-testsuite-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8')
const example = /```ts\n([\s\S]*?)```/.exec(readme)![1]!
const script = join(folder, 'example.mts')
const source = new URL('../src/index.ts', import.meta.url).href
writeFileSync(script, example.replace("from '@svc/cas-testsuite'", `from '${source}'`))
const { testMemoryStore } = (await import(pathToFileURL(script).href)) as {
  testMemoryStore: (runner: ContractApi) => void
}
testMemoryStore({ describe, test, expect })
