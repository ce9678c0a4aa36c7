// A release from end to end, into a registry on loopback. Needs `dist`, so `pnpm build` comes first.
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { packages } from './tarballs.ts'

test('a dry run makes versions and changelogs, publishes every package, and one installs from there', async () => {
  const script = fileURLToPath(new URL('../scripts/release.ts', import.meta.url))
  const { stdout } = await promisify(execFile)(process.execPath, [script, '--dry-run'], {
    timeout: 300_000,
    maxBuffer: 2 ** 24
  })
  const published = /published (.*);/.exec(stdout)?.[1]?.split(', ')
  expect(published?.map((each) => each.replace(/@[^@]*$/, '')).sort()).toEqual(packages.map(({ name }) => name).sort())
}, 320_000)
