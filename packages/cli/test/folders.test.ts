// One repository with several quants; one of each kind in folders.slow.ts.
import { madeRepositories } from '@svc/testkit/made-repositories'
import { testFolders } from './folders.ts'

testFolders(madeRepositories(1))
