import { expect, it } from 'vitest'
import { parseConfigText } from '../../src/config/file.ts'
import { withStoreRoot } from '../../src/config/store-root.ts'
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
  const edited = withStoreRoot(text, ROOT, 'c.toml')
  expect(edited).toBe(expected.replace('X', () => JSON.stringify(ROOT)))
  expect(parseConfigText(edited, 'c.toml').store).toEqual({ root: ROOT })
})

it.each(['store = { root = "/old" }\n', '[store]\nroot = """\n/old"""\n'])('leaves %j to its owner', (text) => {
  expect(() => withStoreRoot(text, ROOT, 'c.toml')).toThrow(ConfigError)
})
