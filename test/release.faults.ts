// A release from end to end, into a registry on loopback. Needs `dist`, so `pnpm build` comes first.
import { execFile } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { packages } from './tarballs.ts'

test('a dry run publishes every package, installs one, and writes all files of the release', async () => {
  const out = mkdtempSync(join(tmpdir(), 'svc-release-out-'))
  onTestFinished(() => rmSync(out, { recursive: true, force: true }))
  const script = fileURLToPath(new URL('../scripts/release.ts', import.meta.url))
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [script, '--dry-run', '--platform', 'this', '--out', out],
    {
      timeout: 300_000,
      maxBuffer: 2 ** 24
    }
  )
  const published = /published (.*);/.exec(stdout)?.[1]?.split(', ')
  expect(published?.map((each) => each.replace(/@[^@]*$/, '')).sort()).toEqual(packages.map(({ name }) => name).sort())
  const files = readdirSync(out)
  expect(files).toEqual(expect.arrayContaining(['Dockerfile', 'install.sh', 'provenance.intoto.json', 'SHA256SUMS']))
  for (const { name } of packages)
    expect(
      files.some((file) => file.startsWith(`${name.replace('@svc/', 'svc-')}-`) && file.endsWith('.tgz')),
      name
    ).toBe(true)
  expect(files.some((file) => file.endsWith('.cdx.json'))).toBe(true)
  const sums = readFileSync(join(out, 'SHA256SUMS'), 'utf8').trim().split('\n')
  expect(sums.map((line) => line.split('  ')[1]).sort()).toEqual(files.filter((file) => file !== 'SHA256SUMS').sort())
}, 320_000)
