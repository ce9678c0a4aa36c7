// The site of the documentation, built as `pnpm run docs` does: links that lead nowhere fail it.
import { execFile } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { expect, it, onTestFinished } from 'vitest'

const root = resolve(import.meta.dirname, '..')

it('has a page for each guide, complete headings, and an offline search', async () => {
  const out = mkdtempSync(join(tmpdir(), 'svc-site-'))
  onTestFinished(() => rmSync(out, { recursive: true, force: true }))
  const vitepress = join(root, 'node_modules/vitepress/bin/vitepress.js')
  await promisify(execFile)(process.execPath, [vitepress, 'build', 'docs', '--outDir', out], { cwd: root })
  const guides = readdirSync(join(root, 'docs/guide')).filter((name) => name.endsWith('.md'))
  const pages = readdirSync(join(out, 'docs/guide'))
  for (const guide of guides) expect(pages).toContain(guide.replace(/\.md$/, '.html'))
  expect(readFileSync(join(out, 'docs/api.html'), 'utf8')).toContain('GET /v1/jobs/{id}')
  expect(readdirSync(join(out, 'assets/chunks')).some((name) => name.includes('localSearchIndex'))).toBe(true)
})
