// Tests run from the sources, but the page of `svc ui` exists only as it was built: a checkout without it gets it before the first test.
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const ui = fileURLToPath(new URL('../packages/ui/', import.meta.url))

export default function setup(): void {
  if (existsSync(`${ui}dist/page/app.js`)) return
  execFileSync(fileURLToPath(new URL('../node_modules/.bin/tsup', import.meta.url)), ['--silent'], { cwd: ui })
}
