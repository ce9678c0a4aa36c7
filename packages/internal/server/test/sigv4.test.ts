import { describe, expect, test } from 'vitest'
import { signGet } from '../src/sigv4.ts'

/** The example of Amazon's documentation of signatures in a header, with its results. */
const example = {
  region: 'us-east-1',
  key: { accessKeyId: 'AKIAIOSFODNN7EXAMPLE', secretAccessKey: 'wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY' },
  at: new Date('2013-05-24T00:00:00Z')
}
const signature = (headers: Record<string, string>): string => /Signature=(\w+)$/.exec(headers.authorization!)![1]!

describe('signatures are those that Amazon documents', () => {
  test('for an object with a range', () => {
    const headers = signGet({
      ...example,
      url: new URL('https://examplebucket.s3.amazonaws.com/test.txt'),
      headers: { range: 'bytes=0-9' }
    })
    expect(signature(headers)).toBe('f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41')
    expect(headers.authorization).toContain('SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,')
  })

  test.each([
    ['?lifecycle', 'fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543'],
    ['?max-keys=2&prefix=J', '34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7']
  ])('for the query %s', (query, wanted) => {
    const url = new URL(`https://examplebucket.s3.amazonaws.com/${query}`)
    expect(signature(signGet({ ...example, url }))).toBe(wanted)
  })
})

test('a path is encoded once, however it was written', () => {
  const of = (path: string): string => signature(signGet({ ...example, url: new URL(`http://h${path}`) }))
  expect(of('/a%20b%2Bc/%C3%BC(1)')).toBe(of('/a b%2bc/ü%281%29'))
  expect(of('/a+b')).toBe(of('/a%2Bb'))
  expect(of('/a+b')).not.toBe(of('/a%20b'))
  expect(of('/100%25')).not.toBe(of('/100%2525'))
})

test('a session token is sent and signed', () => {
  const url = new URL('https://h/x')
  const headers = signGet({ ...example, url, key: { ...example.key, sessionToken: 'session' } })
  expect(headers['x-amz-security-token']).toBe('session')
  expect(headers.authorization).toContain(';x-amz-security-token,')
  expect(signature(headers)).not.toBe(signature(signGet({ ...example, url })))
})
