// Opens a model of a store beside its owner, says so, and keeps it: `beside ROOT REF`, or of a daemon: `daemon SOCKET REF`.
import { createClient, modelsOf } from '@svc/client'
import { readLibrary } from '@svc/library'

const [how, where, ref] = process.argv.slice(2) as ['beside' | 'daemon', string, string]
const models = how === 'beside' ? await readLibrary({ root: where }) : modelsOf(createClient({ socketPath: where }))
const { files } = await models.open(ref)
// The other model of the test has the same config
const own = files.filter(({ kind }) => kind !== 'config')
process.stdout.write(`${JSON.stringify(own.map(({ path }) => path))}\n`)
process.stdin.resume()
