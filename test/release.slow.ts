// A release in small: versions and changelogs of all packages, and two that depend on each other published into a registry
// on loopback. `release.faults.ts` publishes all. Needs `dist`, so `pnpm build` comes first.
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'

const run = promisify(execFile)
const script = fileURLToPath(new URL('../scripts/release.ts', import.meta.url))

test('a dry run makes versions and changelogs, publishes two packages, and installs the dependent one from there', async () => {
  const { stdout } = await run(process.execPath, [script, '--dry-run', '--only', '@svc/ref', '--only', '@svc/cas'])
  const [, published = '', installed] = /published (.*); installed (\S+) from there/.exec(stdout) ?? []
  expect(published.replaceAll(/@\d+\.\d+\.\d+/g, '').split(', ')).toEqual(['@svc/cas', '@svc/ref'])
  expect(installed).toBe('@svc/cas')
})

test('a release is refused without a way to sign it', async () => {
  const { CI: _, ...env } = process.env
  await expect(run(process.execPath, [script], { env })).rejects.toMatchObject({ code: 1 })
})
