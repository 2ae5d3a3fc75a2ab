//! What the daemons read.

use std::path::Path;

use super::{MUNGE, PORT};

/// Of slurm.conf: two nodes with two slots each, whatever the machine has; no cgroups.
///
/// Jobs of the partition `urgent` send those of `main` back to the queue. A task that goes back
/// waits as long as credentials are valid, which is two minutes elsewhere and seconds here.
pub(super) fn slurm(folder: &Path, host: &str, accounting: bool) -> String {
    let folder = folder.display();
    let (first, second) = (PORT + 1, PORT + 2);
    let storage = if accounting {
        let port = PORT + 3;
        format!(
            "AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={port}
AccountingStoragePass={MUNGE}/socket"
        )
    } else {
        "AccountingStorageType=accounting_storage/none".to_owned()
    };
    format!(
        "ClusterName=local
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={PORT}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={MUNGE}/socket,cred_expire=15
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
JobAcctGatherType=jobacct_gather/none
{storage}
JobCompType=jobcomp/none
ReturnToService=2
SlurmdParameters=config_overrides
SlurmctldTimeout=10
SlurmdTimeout=10
MessageTimeout=5
KillWait=5
MinJobAge=300
SchedulerParameters=sched_interval=2,bf_interval=2
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n/slurmd.pid
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/%n.log
NodeName=node1 NodeHostname={host} NodeAddr=127.0.0.1 Port={first} CPUs=2 RealMemory=2000
NodeName=node2 NodeHostname={host} NodeAddr=127.0.0.1 Port={second} CPUs=2 RealMemory=2000
PartitionName=main Nodes=node1,node2 Default=YES MaxTime=INFINITE PriorityTier=1 State=UP
PartitionName=urgent Nodes=node1,node2 MaxTime=INFINITE PriorityTier=9 State=UP
"
    )
}

/// Of slurmdbd.conf: the accounting, kept in the database of [`super::accounting`].
pub(super) fn accounting(folder: &Path, host: &str) -> String {
    let folder = folder.display();
    let (port, database) = (PORT + 3, PORT + 4);
    format!(
        "AuthType=auth/munge
AuthInfo=socket={MUNGE}/socket
DbdHost={host}
DbdAddr=127.0.0.1
DbdPort={port}
SlurmUser=root
PidFile={folder}/slurmdbd.pid
LogFile={folder}/log/slurmdbd.log
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={database}
StorageUser=slurm
StoragePass=slurm
StorageLoc=slurm
"
    )
}
