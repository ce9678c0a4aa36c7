// One generated repository of each kind; three or four variants of each in folders.faults.ts.
import { KINDS_OF_REPOSITORIES, madeRepositories } from '@svc/testkit/made-repositories'
import { testFolders } from './folders.ts'

testFolders(madeRepositories(KINDS_OF_REPOSITORIES + 1))
