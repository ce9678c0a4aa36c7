// Runs every command of README.md, docs/ and the packages' READMEs against real daemons, a hub and a catalog on loopback. Programs of
// others are stood in for by test/pages/stand-ins. A block that cannot run says why in a comment before it, `<!-- not run: reason -->`;
// test/pages/blocks.ts has the other comments. Needs `dist`, so `pnpm build` comes first. The TypeScript blocks of the packages'
// READMEs are run by the tests of these packages.
import { globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { blocksOf } from './pages/blocks.ts'
import { type PageRun, runPage } from './pages/run-page.ts'
import { startWorld, type World } from './pages/world.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const pages = globSync(['README.md', 'docs/*.md', 'docs/guide/*.md', 'systemd/README.md', 'packages/*/README.md'], {
  cwd: root
})
  .filter((page) => blocksOf(readFileSync(join(root, page), 'utf8')).some(({ language }) => language === 'sh'))
  .sort()

let scratch: string
let world: World
const runs: PageRun[] = []
beforeAll(async () => {
  scratch = mkdtempSync(join(tmpdir(), 'svc-pages-'))
  world = await startWorld(scratch)
})
afterAll(async () => {
  await world.close()
  rmSync(scratch, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 })
})

test('pages with commands exist', () => {
  expect(pages.length).toBeGreaterThan(15)
})

describe('the commands of', () => {
  test.each(pages)('%s', async (page) => {
    const run = await runPage(page, root, scratch, world)
    runs.push(run)
    expect(run.failed.join('\n')).toBe('')
  })
})

test('commands that are not run say why', () => {
  const notRun = runs.flatMap((run) => run.notRun).sort()
  const ran = runs.flatMap((run) => run.ran)
  console.log(`${ran.length} blocks ran; ${notRun.length} did not:\n${notRun.join('\n')}`)
  expect(ran.length).toBeGreaterThanOrEqual(2.5 * notRun.length)
})

test('every package with TypeScript in its README runs it in a test', () => {
  const without = globSync('packages/*/README.md', { cwd: root })
    .filter((page) => blocksOf(readFileSync(join(root, page), 'utf8')).some(({ language }) => /^[jt]s$/.test(language)))
    .filter(
      (page) =>
        !globSync(`${join(page, '..')}/test/**/*.test.ts`, { cwd: root }).some((path) =>
          /README\.md['"]|readmeExample\(import\.meta\.url\)/.test(readFileSync(join(root, path), 'utf8'))
        )
    )
  expect(without).toEqual([])
})
