// The man page of svc is made from its commands: what was added last is in it.
import { expect, it } from 'vitest'
import { svcdPage, svcPage } from '../scripts/dist/man.ts'

it.each(['why', 'private', 'backup', 'restore', '--replace', '--withheld'])('svc.1 has %s', (words) => {
  const heads = svcPage('1.2.3')
    .split('\n')
    .map((line) => line.replaceAll('\\-', '-'))
    .filter((line) => line.startsWith('\\fB'))
  expect(heads.filter((line) => line.startsWith(`\\fB${words}\\fR`))).not.toEqual([])
})

it('both pages are ASCII, as the C locale reads them', () => {
  for (const page of [svcPage('1.2.3'), svcdPage('1.2.3')]) expect(page.match(/^.*[^\n -~].*$/gm)).toBeNull()
})
