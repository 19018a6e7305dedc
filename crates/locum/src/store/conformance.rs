//! What every store must do, as cases that are run against each of them.

pub(super) mod fixture;

mod attic;
mod board;
mod context;
mod inbox;
mod leases;
mod life;
mod logs;
mod parked;
mod sessions;
mod spending;

/// Makes each case a test of each store.
macro_rules! cases {
    ($($group:ident: $($case:ident),* $(,)?;)*) => {
        mod memory {
            $($(
                #[tokio::test]
                async fn $case() {
                    super::$group::$case(&crate::store::memory::MemoryStore::new()).await;
                }
            )*)*
        }

        mod sqlite {
            $($(
                #[tokio::test]
                async fn $case() {
                    let directory = tempfile::tempdir().unwrap();
                    let path = directory.path().join("store.db");
                    super::$group::$case(&crate::store::sqlite::SqliteStore::open(&path).unwrap()).await;
                }
            )*)*
        }
    };
}

cases! {
    sessions:
        ids_are_consecutive_and_not_consumed_by_refusals,
        sessions_and_projects_are_apart,
        accepted_tasks_are_rows_with_a_log,
        a_first_turn_is_kept_with_the_acceptance,
        a_view_counts_what_runs_and_what_was_ever_accepted,
        agents_are_defined_and_redefined,
        looking_changes_nothing,
        a_decision_takes_effect_whole_or_not_at_all,
        a_panicking_decision_leaves_the_store_usable,
        idempotency_keys_find_their_task,
        collected_tasks_leave_the_list,
        queries_find_what_they_name_oldest_first,
        pages_go_from_the_newest_task_to_the_oldest,
        every_character_survives;
    context:
        versions_count_over_removals,
        keys_are_listed_with_sizes_and_rights,
        rights_and_expiry_survive,
        the_last_twenty_versions_are_kept_newest_first,
        snapshots_are_kept_and_replaced,
        a_snapshot_survives_every_change_and_other_sessions;
    board:
        board_tasks_are_kept_whole_and_in_order,
        owners_of_board_tasks_are_looked_up,
        archived_board_tasks_are_kept_for_a_while;
    life:
        sessions_are_listed_by_project,
        an_archived_session_says_so,
        a_deleted_session_leaves_nothing,
        unfinished_tasks_are_counted;
    logs:
        a_session_is_read_in_the_order_of_its_appends_without_a_gap_or_a_repetition,
        appends_continue_the_log,
        an_append_needs_the_lease_and_the_next_number,
        nothing_follows_the_end,
        contradicting_records_are_refused,
        an_empty_append_does_nothing,
        records_are_read_page_by_page,
        what_was_appended_together_is_read_one_by_one,
        large_events_survive,
        standings_are_kept_beside_the_log;
    attic:
        what_ended_before_is_removed_with_its_log,
        what_something_unfinished_needs_stays,
        the_last_to_write_stays_so_that_numbers_go_on,
        no_more_is_removed_at_once_than_was_said,
        silent_owners_that_hold_nothing_are_forgotten;
    parked:
        a_queued_task_starts_at_once_where_there_is_room,
        queued_tasks_start_in_order_as_places_free_up,
        places_of_a_group_are_counted_within_it,
        a_long_queue_hides_no_other,
        who_delegates_holds_no_place_whatever_is_queued,
        the_queue_before_a_task_is_counted,
        a_chain_hands_on_each_result,
        results_of_dependencies_become_blocks,
        a_failed_dependency_fails_a_whole_chain,
        a_cancelled_dependency_fails_what_waits_for_it,
        a_dependency_that_ended_before_counts,
        who_wins_a_race_ends_it_for_the_others,
        a_race_is_over_for_those_who_never_started;
    leases:
        a_free_task_is_claimed_once,
        a_dead_owners_task_is_taken_over,
        a_holder_from_admission_has_the_first_epoch,
        a_released_task_is_free,
        a_task_that_ended_cannot_be_claimed,
        owners_are_those_that_hold_something,
        ids_of_owners_use_all_bits;
    spending:
        two_tasks_cannot_take_the_same_money,
        what_happened_is_taken_as_it_is,
        what_must_be_left_is_kept,
        a_declined_turn_holds_nothing,
        what_ended_tasks_spent_stays_spent,
        purses_of_sessions_are_apart,
        tasks_of_models_are_counted_where_they_belong;
    inbox:
        commands_reach_the_holder_once,
        commands_wait_for_a_holder,
        commands_to_ended_tasks_are_dropped,
        changes_are_told_and_events_are_not;
}
