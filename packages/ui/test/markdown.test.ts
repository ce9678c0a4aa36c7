import { expect, test } from 'vitest'
import { blocksOf } from '../src/parts/markdown.tsx'

test('a card becomes headings, paragraphs, lists and code, without markup', () => {
  const card = [
    '# A *model*',
    'First line,',
    'second <b>line</b>. ![x](https://models.example/x.png)',
    '',
    '- one',
    '2. two',
    '| a | b |',
    '|---|---|',
    '```sh',
    'svc ls <x>',
    '```',
    '<script>alert(1)</script>'
  ]
  expect(blocksOf(card.join('\r\n'))).toEqual([
    { kind: 'heading', text: 'A *model*' },
    { kind: 'paragraph', text: 'First line, second line.' },
    { kind: 'list', items: ['one', 'two'] },
    { kind: 'code', text: '| a | b |\n|---|---|' },
    { kind: 'code', text: 'svc ls <x>' },
    { kind: 'paragraph', text: 'alert(1)' }
  ])
})

test('a fence without an end, and no text at all', () => {
  expect(blocksOf('```\nrest')).toEqual([{ kind: 'code', text: 'rest' }])
  expect(blocksOf('\n\n')).toEqual([])
})

test('a text of brackets alone is read like any other', { timeout: 20_000 }, () => {
  const brackets = '![['.repeat(100_000)
  expect(blocksOf(brackets)).toEqual([{ kind: 'paragraph', text: brackets.slice(0, 200_000) }])
})
