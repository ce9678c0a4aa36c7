import { expect, it } from 'vitest'
import { parseConfigText } from '../../src/config/file.ts'
import { withStoreKey } from '../../src/config/store-keys.ts'
import { ConfigError } from '../../src/errors.ts'

const ROOT = '/mnt/a "b" \\ c'

it.each([
  ['', '[store]\nroot = X\n'],
  ['# c\n[swarm]\nseed = false', '# c\n[swarm]\nseed = false\n\n[store]\nroot = X\n'],
  ['[store]\n[swarm]\nseed = false\n', '[store]\nroot = X\n[swarm]\nseed = false\n'],
  ['[ store ] # here\n  root = "~/x"\n', '[ store ] # here\nroot = X\n'],
  ['store.root = "/old"\n[swarm]\ndht = false\n', 'store.root = X\n[swarm]\ndht = false\n'],
  ['[hub]\nendpoint = "[store]"\n[store]\nroot = "/old"\n', '[hub]\nendpoint = "[store]"\n[store]\nroot = X\n']
])('changes one key of %j', (text, expected) => {
  const edited = withStoreKey(text, 'root', ROOT, 'c.toml')
  expect(edited).toBe(expected.replace('X', () => JSON.stringify(ROOT)))
  expect(parseConfigText(edited, 'c.toml').store).toEqual({ root: ROOT })
})

it.each(['store = { root = "/old" }\n', '[store]\nroot = """\n/old"""\n'])('leaves %j to its owner', (text) => {
  expect(() => withStoreKey(text, 'root', ROOT, 'c.toml')).toThrow(ConfigError)
})

it('keeps comments and other keys beside the one that it adds', () => {
  const text = '# mine\n[store] # the big disk\nroot = "/mnt/models" # mounted by hand\n'
  expect(withStoreKey(text, 'expect', 'an-id', 'c.toml')).toBe(
    '# mine\n[store] # the big disk\nexpect = "an-id"\nroot = "/mnt/models" # mounted by hand\n'
  )
})
