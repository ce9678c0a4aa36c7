// Several quants, parts of a model in folders, odd names; forty repositories in folders.slow.ts.
import { madeRepositories } from '@svc/testkit/made-repositories'
import { testFolders } from './folders.ts'

const KINDS = ['gguf', 'sentence-transformers', 'names']
testFolders(madeRepositories(12).filter(({ kind }) => KINDS.includes(kind)))
