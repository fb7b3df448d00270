//! Which cells go together into a task.

/// The cells at the places `wanted`, at most `chunk` in a task. A task is named by its
/// first and its last cell, so none has a cell between them that is `open` and another's.
/// Both lists are in order.
pub(super) fn tasks(wanted: &[usize], open: &[usize], chunk: usize) -> Vec<Vec<usize>> {
    let mut tasks: Vec<Vec<usize>> = Vec::new();
    for &place in wanted {
        match tasks.last_mut() {
            Some(task) if task.len() < chunk && beside(open, task, place) => task.push(place),
            _ => tasks.push(vec![place]),
        }
    }
    tasks
}

/// Whether no open cell lies between the last one of a task and `place`.
fn beside(open: &[usize], task: &[usize], place: usize) -> bool {
    let after = |place| open.partition_point(|&one| one <= place);
    task.last().is_some_and(|&last| after(last) + 1 == after(place))
}

#[cfg(test)]
mod tests {
    use super::tasks;

    #[test]
    fn tasks_hold_what_is_open_and_no_cells_of_others() {
        assert_eq!(tasks(&[0, 1, 2, 3, 4], &[0, 1, 2, 3, 4], 2), [vec![0, 1], vec![2, 3], vec![4]]);
        // What has ended may lie between.
        assert_eq!(tasks(&[1, 4, 9], &[1, 4, 9], 5), [vec![1, 4, 9]]);
        // What others run may not.
        assert_eq!(tasks(&[1, 4, 9], &[1, 4, 6, 9], 5), [vec![1, 4], vec![9]]);
        assert_eq!(tasks(&[], &[3], 5), Vec::<Vec<usize>>::new());
    }
}
