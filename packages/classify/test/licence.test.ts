import { createHash } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { digestFromBytes } from '@svc/ref'
import licences from 'spdx-license-list/full.js'
import { describe, expect, test } from 'vitest'
import { generate } from '../scripts/licence-texts.ts'
import { detectLicence, recognize } from '../src/index.ts'
import { licenceAnnotations, licenceRef, MAX_TEXTS_BYTES } from '../src/licence.ts'
import { TEXTS } from '../src/licence-texts.ts'
import { bigramsOf, dice, licenceWords } from '../src/licence-words.ts'
import type { LicenceFact } from '../src/types.ts'
import { readVectors } from './vectors.ts'

const vectors = readVectors<{ ids: string[]; texts: { title: string; text: string; id: string | null }[] }>('licences')

const spdxText = (id: string): string => licences[id]!.licenseText
/** Lines of at most 72 characters, as editors wrap them. */
const wrapped = (text: string): string => text.replace(/([^\n]{1,72})(?: +|\n|$)/g, '$1\n')

test('the checked-in texts are what the script makes of the package', () => {
  expect(readFileSync(new URL('../src/licence-texts.ts', import.meta.url), 'utf8')).toBe(generate())
})

test('the curated list', () => {
  expect([...new Set(TEXTS.map(([id]) => id))].sort()).toEqual(vectors.ids)
})

describe('each text is recognized', () => {
  test.each(vectors.ids)('%s', (id) => {
    const text = spdxText(id)
    const styles = [
      text,
      `\uFEFF${text.replaceAll('\n', '\r\n')}`,
      wrapped(text),
      text.toUpperCase(),
      `Copyright (c) 2024 Some Lab, Inc.\n\n${text}`,
      text.replace(/^/gm, '  '),
      text.replace(/^(?=\S)/gm, '> ')
    ]
    expect(styles.map((style) => detectLicence(style))).toEqual(styles.map(() => id))
  })
})

test.each(vectors.texts)('$title', ({ text, id }) => {
  expect(detectLicence(text)).toBe(id ?? undefined)
})

test('a file with two licences counts as neither', () => {
  expect(detectLicence(`${spdxText('MIT')}\n\n${spdxText('BSD-3-Clause')}`)).toBeUndefined()
})

test('a text with a clause added is not the licence', () => {
  const clause =
    'Commercial use of the model and of its outputs is prohibited without a separate written agreement with the licensor.'
  for (const id of ['MIT', 'BSD-3-Clause', 'ISC']) expect(detectLicence(`${spdxText(id)}\n${clause}`)).toBeUndefined()
})

test.skipIf(!existsSync('/usr/share/common-licenses/GPL-3'))('the files that a distribution ships', () => {
  const detect = (name: string): string | undefined =>
    detectLicence(readFileSync(`/usr/share/common-licenses/${name}`, 'utf8'))
  expect(['Apache-2.0', 'GPL-2', 'GPL-3', 'LGPL-2.1', 'LGPL-3', 'MPL-2.0', 'GFDL-1.3', 'CC0-1.0'].map(detect)).toEqual([
    'Apache-2.0',
    'GPL-2.0-only',
    'GPL-3.0-only',
    'LGPL-2.1-only',
    'LGPL-3.0-only',
    'MPL-2.0',
    'GFDL-1.3-only',
    'CC0-1.0'
  ])
})

test('similarity', () => {
  const of = (text: string) => bigramsOf(licenceWords(text))
  expect(dice(of('a b c'), of('a b c'))).toBe(1)
  expect(dice(of('a b c'), of('c b a'))).toBe(0)
  expect(dice(of('x y x y'), of('x y'))).toBe(0.5)
  expect(dice(of(''), of(''))).toBe(0)
})

test('hostile texts take linear time', () => {
  const before = process.cpuUsage()
  for (const piece of ['<', '<a', '&', 'http://', 'copyright ', '1. ', '#', ' ', '(c', 'a '])
    detectLicence(piece.repeat((256 * 1024) / piece.length))
  // quadratic time would be minutes.
  expect(process.cpuUsage(before).user / 1e6).toBeLessThan(10)
})

describe('annotations', () => {
  const fact = (name: string, content: string | Uint8Array | number): LicenceFact => {
    const bytes =
      typeof content === 'string'
        ? new TextEncoder().encode(content)
        : typeof content === 'number'
          ? new Uint8Array(content)
          : content
    return {
      name,
      digest: digestFromBytes(createHash('sha256').update(bytes).digest()),
      bytes: bytes.length > 256 * 1024 ? undefined : bytes
    }
  }
  const annotate = (...facts: LicenceFact[]) => {
    const recognition = recognize(facts.map(({ name, bytes }) => ({ name, sizeBytes: bytes?.length ?? 1_000_000 })))
    const { annotations, warnings } = licenceAnnotations(recognition, facts)
    return { annotations, warnings: warnings.map(({ code }) => code) }
  }

  test('several files are joined, sorted and unique', () => {
    const mit = spdxText('MIT')
    const own = 'The Model Licence: ask us.'
    const facts = [
      fact('LICENSE-MODEL', own),
      fact('LICENSE', mit),
      fact('vae/LICENSE', mit),
      fact('COPYING', spdxText('Apache-2.0')),
      fact('NOTICE', 'thanks')
    ]
    const expected = {
      annotations: {
        'svc.license': `Apache-2.0 AND ${licenceRef(facts[0]!.digest)} AND MIT`,
        'svc.license.file.COPYING': spdxText('Apache-2.0'),
        'svc.license.file.LICENSE': mit,
        'svc.license.file.LICENSE-MODEL': own,
        'svc.license.file.NOTICE': 'thanks',
        'svc.license.file.vae/LICENSE': mit
      },
      warnings: []
    }
    expect(annotate(...facts)).toEqual(expected)
    expect(annotate(...facts.toReversed())).toEqual(expected)
    expect(licenceRef(facts[0]!.digest)).toMatch(/^LicenseRef-sha256-[0-9a-f]{12}$/)
  })

  test('a notice alone names no licence, an empty file nothing', () => {
    expect(annotate(fact('NOTICE', spdxText('MIT')), fact('LICENSE', ''))).toEqual({
      annotations: { 'svc.license.file.NOTICE': spdxText('MIT') },
      warnings: []
    })
  })

  test('large texts and those that are not UTF-8 are named and not kept', () => {
    const large = fact('LICENSE', 300_000)
    const foreign = fact('LICENSE.pdf', Uint8Array.of(0x25, 0x50, 0xff))
    expect(annotate(large, foreign)).toEqual({
      annotations: {
        'svc.license': [large, foreign]
          .map(({ digest }) => licenceRef(digest))
          .sort()
          .join(' AND ')
      },
      warnings: ['licence-unreadable', 'licence-unreadable']
    })
  })

  test('all texts together fit into a manifest', () => {
    const facts = Array.from({ length: 9 }, (_, i) => fact(`${i}/LICENSE`, String(i).repeat(200 * 1024)))
    const { annotations, warnings } = annotate(...facts)
    expect(Object.keys(annotations).filter((key) => key.startsWith('svc.license.file.'))).toEqual(
      [0, 1, 2, 3, 4].map((i) => `svc.license.file.${i}/LICENSE`)
    )
    expect(warnings).toEqual(Array(4).fill('licence-not-kept'))
    expect(JSON.stringify(annotations).length).toBeLessThan(MAX_TEXTS_BYTES + 4096)
    expect(annotations['svc.license']!.split(' AND ')).toHaveLength(9)
  })

  test('the text is verbatim, with its byte order mark', () => {
    expect(annotate(fact('LICENSE', '\uFEFFx\r\ny')).annotations['svc.license.file.LICENSE']).toBe('\uFEFFx\r\ny')
  })

  test('a file that the caller did not read is an error', () => {
    expect(() => licenceAnnotations(recognize([{ name: 'LICENSE', sizeBytes: 1 }]), [])).toThrow(
      expect.objectContaining({ code: 'E_MISSING_FACT' })
    )
  })
})
