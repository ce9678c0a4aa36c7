import { execFileSync } from 'node:child_process'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { gitBlobSha1, gitBlobSha1HasherUrl } from '../src/index.ts'

const git = (bytes: Uint8Array) => execFileSync('git', ['hash-object', '--stdin'], { input: bytes }).toString().trim()

test.each([[''], ['a'], ['blob 3\0abc'], ['x'.repeat(100_000)]])('equals the hash of git', (text) => {
  const bytes = Buffer.from(text)
  expect(gitBlobSha1(bytes)).toBe(git(bytes))
})

test('any chunking gives the same name', async () => {
  const { default: create } = (await import(gitBlobSha1HasherUrl)) as typeof import('../src/git-blob-sha1-hasher.ts')
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 50 })), (chunks) => {
      const whole = Buffer.concat(chunks)
      const hasher = create(undefined, whole.length)
      for (const chunk of chunks) hasher.update(chunk)
      expect(Buffer.from(hasher.digest()).toString('hex')).toBe(gitBlobSha1(whole))
    })
  )
  expect(() => create(undefined, undefined)).toThrow(TypeError)
})
