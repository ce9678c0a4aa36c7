import { existsSync, globSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const root = fileURLToPath(new URL('..', import.meta.url))
const read = (path: string): string => readFileSync(`${root}${path}`, 'utf8')

/** Base names of all test files of every tier. */
const testNames = new Set(
  globSync('{packages,test}/**/*.{test,slow,faults}.ts', { cwd: root, exclude: ['**/node_modules', '**/dist'] }).map(
    (path) => path.slice(path.lastIndexOf('/') + 1)
  )
)

test('each promise of docs/reliability.md names tests that exist', () => {
  const rows = [...read('docs/reliability.md').matchAll(/^\| (.+?) \| (`packages.+) \|$/gm)]
  expect(rows.length).toBeGreaterThan(8)
  for (const [, promise, tests = ''] of rows) {
    const paths = [...tests.matchAll(/`([^`]+)`/g)].map(([, path]) => path!)
    expect([promise, paths.filter((path) => !existsSync(`${root}${path}`))]).toEqual([promise, []])
  }
})

test.each(['docs/budgets.md', 'SECURITY.md'])('each test that %s names exists', (page) => {
  const named = [...read(page).matchAll(/`([\w./-]+\.(?:test|slow|faults)\.ts)`/g)].map(([, path]) => path!)
  expect(named.length).toBeGreaterThan(0)
  const exists = (path: string): boolean => (path.includes('/') ? existsSync(`${root}${path}`) : testNames.has(path))
  expect(named.filter((path) => !exists(path))).toEqual([])
})

test('each path that ARCHITECTURE.md sends a reader to exists', () => {
  const [, section = ''] = /^## Where things are$([\s\S]*?)^## /m.exec(read('ARCHITECTURE.md')) ?? []
  const paths = [...section.matchAll(/`(packages\/[^`]+)`/g)].map(([, path]) => path!)
  expect(paths.length).toBeGreaterThan(15)
  expect(paths.filter((path) => !existsSync(`${root}${path}`))).toEqual([])
})

test('each file on the walks of ARCHITECTURE.md exists', () => {
  const [, section = ''] = /^## The walks$([\s\S]*?)^## /m.exec(read('ARCHITECTURE.md')) ?? []
  const paths = [...section.matchAll(/(?<![\w/])[\w-]+(?:\/[\w-]+)*\/src\/[\w/.-]+\.ts/g)].map(([path]) => path)
  expect(paths.length).toBeGreaterThan(40)
  expect(paths.filter((path) => !existsSync(`${root}packages/${path}`))).toEqual([])
})
