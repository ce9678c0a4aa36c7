import { execFile } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { buildHouse, type Files } from './house.ts'

const sound: Files = {
  'packages/a/package.json': { name: '@svc/a', exports: { '.': { types: './dist/index.d.ts' } } },
  'packages/a/dist/index.d.ts': `/** Says a. */\nexport declare function a(text: string): void;\nexport { type B } from './b.ts';\n`,
  'packages/a/dist/b.d.ts': '/** A b. */\nexport interface B {\n    readonly size: number;\n}\n',
  'packages/inner/package.json': {
    name: '@svc/inner',
    private: true,
    exports: { '.': { types: './dist/index.d.ts' } }
  },
  'packages/inner/dist/index.d.ts': 'export declare const untold: number;\n'
}

const SCRIPT = join(import.meta.dirname, '../../scripts/api.ts')

/** The script over a small house; a code and what it printed. */
const api = (root: string, command: string): Promise<{ readonly code: unknown; readonly output: string }> =>
  new Promise((resolve) =>
    execFile(process.execPath, [SCRIPT, command], { env: { ...process.env, SVC_API_ROOT: root } }, (error, out, err) =>
      resolve({ code: error?.code ?? 0, output: out + err })
    )
  )

test('a change of the public interface makes its report stale', async () => {
  using house = buildHouse(sound)
  expect((await api(house.root, 'check')).code).toBe(1)
  expect((await api(house.root, 'update')).code).toBe(0)
  expect((await api(house.root, 'check')).code).toBe(0)
  const report = readFileSync(join(house.root, 'packages/a/api.md'), 'utf8')
  expect(report).toContain('function a(text: string): void')
  expect(report).toContain('readonly size: number')

  writeFileSync(
    join(house.root, 'packages/a/dist/b.d.ts'),
    '/** A b. */\nexport interface B {\n    readonly sizeBytes: number;\n}\n'
  )
  const stale = await api(house.root, 'check')
  expect(stale.code).toBe(1)
  expect(stale.output).toContain('packages/a/api.md')
})

test('a docstring alone changes no report', async () => {
  using house = buildHouse(sound)
  await api(house.root, 'update')
  writeFileSync(
    join(house.root, 'packages/a/dist/b.d.ts'),
    '/** Something with a size. */\nexport interface B {\n    readonly size: number;\n}\n'
  )
  expect((await api(house.root, 'check')).code).toBe(0)
})

test('each public export needs a docstring, whatever its file', async () => {
  using house = buildHouse(sound)
  expect((await api(house.root, 'undocumented')).code).toBe(0)
  writeFileSync(join(house.root, 'packages/a/dist/b.d.ts'), 'export interface B {\n    readonly size: number;\n}\n')
  const missing = await api(house.root, 'undocumented')
  expect(missing.code).toBe(1)
  expect(missing.output.match(/^packages\/.*$/gm)).toEqual(['packages/a: B'])
})

test('an entry exports what it names of other packages, and names nothing that is anything', async () => {
  const names = (declared: string): Files => ({
    ...sound,
    'packages/a/dist/b.d.ts': `import type { C } from '@svc/c';\n/** A b. */\nexport interface B {\n    readonly c: ${declared};\n}\n`
  })
  const exported = {
    'packages/a/dist/index.d.ts': `${sound['packages/a/dist/index.d.ts']}export type { C } from '@svc/c';\n`
  }
  for (const [files, missing] of [
    [names('C'), ['@svc/a: B names C, which it does not export']],
    [names('any'), ['@svc/a: B names any, which it does not export']],
    [{ ...names('C'), ...exported }, []]
  ] as const) {
    using house = buildHouse(files)
    await api(house.root, 'update')
    const { code, output } = await api(house.root, 'check')
    expect([code, output.trim().split('\n').filter(Boolean)]).toEqual([missing.length > 0 ? 1 : 0, missing])
  }
})
