import { lstatSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { CasError, nodeFilePort, replaceFile } from '@svc/cas'
import { expect, test } from 'vitest'
import fault, { Faults } from './fault-port.ts'
import { openDescriptors, temporaryFolder } from './temporary-root.ts'

test('replaces a file, private and whole', async () => {
  const folder = await temporaryFolder()
  const path = join(folder.path, 'state.json')
  for (const text of ['old', 'a longer text', '']) {
    await replaceFile(nodeFilePort, path, Buffer.from(text))
    expect(readFileSync(path, 'utf8')).toBe(text)
    expect(lstatSync(path).mode & 0o777).toBe(0o600)
  }
  expect(readdirSync(folder.path)).toEqual(['state.json'])
  await folder.dispose()
})

test('leaves the old bytes or the new ones, and nothing else, whatever operation fails', async () => {
  const folder = await temporaryFolder()
  const path = join(folder.path, 'state.json')
  for (const [errno, code] of [
    ['EIO', 'E_IO'],
    ['ENOSPC', 'E_NO_SPACE']
  ] as const) {
    const plan = new Faults({ errno })
    const port = fault(plan.filePort.options)
    const descriptors = await openDescriptors()
    for (let n = 1; ; n++) {
      writeFileSync(path, 'old')
      plan.arm(n)
      const error = await replaceFile(port, path, Buffer.from('new')).catch((thrown: unknown) => thrown)
      const { fired } = plan
      plan.arm(0)
      expect(['old', 'new']).toContain(readFileSync(path, 'utf8'))
      expect(readdirSync(folder.path)).toEqual(['state.json'])
      expect(await openDescriptors()).toBe(descriptors)
      if (!fired) break
      expect(error).toBeInstanceOf(CasError)
      expect((error as CasError).code).toBe(code)
    }
    expect(readFileSync(path, 'utf8')).toBe('new')
  }
  await folder.dispose()
})
