// One repository with several quants; forty of all kinds in folders.faults.ts.
import { madeRepositories } from '@svc/testkit/made-repositories'
import { testFolders } from './folders.ts'

testFolders(madeRepositories(1))
